"""Recognizers."""
