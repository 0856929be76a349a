"""Hygiene: what may not stand in any text or tool of a row, nor in the files beside the rows."""
