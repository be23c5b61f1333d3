"""A microphone in the notebook, which records clips."""
