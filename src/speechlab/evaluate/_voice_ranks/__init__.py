"""Voices ranked, and compared with those of dearer services."""
