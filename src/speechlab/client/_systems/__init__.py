"""Functions as systems: their arguments, where they run, and their results."""
