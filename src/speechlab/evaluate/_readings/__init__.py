"""Words that a voice misreads: what was recognized in their place, and spellings by which they are read right."""
