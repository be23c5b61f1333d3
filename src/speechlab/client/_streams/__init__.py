"""Streams of speech and of translations, for ``await``."""
