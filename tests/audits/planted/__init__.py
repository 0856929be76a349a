"""Edits to plant in a build, and what may legitimately vary: the two tables of docs/audits.md."""
