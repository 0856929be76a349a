"""Files, Parquet and the JSON lines store: what lies on disk, and how it gets there whole."""
