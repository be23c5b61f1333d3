"""Readiness and periodic work."""
