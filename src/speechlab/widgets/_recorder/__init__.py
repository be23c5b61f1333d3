"""A microphone in the notebook: what it hears becomes clips."""
