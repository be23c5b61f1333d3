"""Joins of two tables: overlapping segments, and the partners of each segment."""
