"""Releases: frozen, compared and published."""
