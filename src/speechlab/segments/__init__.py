"""Timed tables: segments with start and end in seconds, their joins and file formats. Empty as yet."""
