"""Figures for papers of what widgets show live. Empty as yet."""
