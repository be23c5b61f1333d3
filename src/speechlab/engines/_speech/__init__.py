"""Synthesisers, from the reading of a text to its samples."""
