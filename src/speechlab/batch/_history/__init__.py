"""Runs of the past: loaded, compared and verified."""
