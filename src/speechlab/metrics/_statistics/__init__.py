"""Intervals and significance."""
