"""The table of sound: rows to hear, compare, mark and rate."""
