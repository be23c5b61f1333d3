"""Which segments of two tables overlap, and which belong together."""
