"""Segment frames made out of segment frames."""
