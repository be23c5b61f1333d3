"""Studies of speech: their rows, their summary and their report."""
