"""The audio table: rows to play, compare, mark and rate."""
