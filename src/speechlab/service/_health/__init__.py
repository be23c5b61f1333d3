"""Readiness, and work that is due from time to time."""
