"""Segment frames in files: one table of formats, and a reader and a writer for each."""
