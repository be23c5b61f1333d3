"""Scores of detected segments against a reference, by time only."""
