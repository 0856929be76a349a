"""DuckDB views and marts over predictions, a release and the paper: plain .sql files. See docs/sql.md."""
