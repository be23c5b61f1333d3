"""Acceptance: which lines of a checked batch are ready, and how many of those may still be wrong."""
