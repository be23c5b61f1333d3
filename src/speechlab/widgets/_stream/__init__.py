"""A player of speech that is still being made."""
