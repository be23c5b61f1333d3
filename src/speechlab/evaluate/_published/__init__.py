"""Predictions that others have published: read, and audited."""
