"""A player of streamed speech."""
