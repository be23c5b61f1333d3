"""Alignments of a hypothesis with its reference, and the counts of errors."""
