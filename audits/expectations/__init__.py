"""Great Expectations suites, one module per kind of dataset."""
