"""Functions as systems: what they are told, where they run, and what they give."""
