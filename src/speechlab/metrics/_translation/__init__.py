"""Scores of translations, and counts of glossary terms."""
