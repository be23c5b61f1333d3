"""Measures of a recording: level, pitch, silence, speaking rate."""
