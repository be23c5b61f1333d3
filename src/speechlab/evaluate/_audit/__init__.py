"""Predictions that others published: which ranks hold, and who follows references that are likely wrong."""
