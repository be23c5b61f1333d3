"""Error rates of texts with times and speakers."""
