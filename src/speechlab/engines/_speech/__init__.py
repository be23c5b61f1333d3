"""Synthesisers: readers, phonemes, voices."""
