"""A microphone in the notebook, whose recordings become clips."""
