"""Which voice to take: the study of voices, its figures, and what it advises."""
