"""The gate of the live dataset, on the bundled build and on a copy with a defect for every check."""
