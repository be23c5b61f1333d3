"""Scores of translations, and terms that had to be kept."""
