"""Recognisers."""
