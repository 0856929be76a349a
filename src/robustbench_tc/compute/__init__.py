"""Work over parts: in this process, in forked ones, or on Ray, with the same bytes."""
