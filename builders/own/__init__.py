"""A dataset of a user's own tools and requests: cases in, clean rows and `own.json` out."""
