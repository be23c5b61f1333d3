"""Synthesisers: from text to phonemes to samples."""
