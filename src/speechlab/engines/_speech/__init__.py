"""Synthesizers: from text to phonemes to samples."""
