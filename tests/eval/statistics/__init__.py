"""Simulations that hold the statistics to what docs/statistics.md says of them: `make statistics-check`."""
