"""Containers and codecs: recognized, decoded, encoded, streamed."""
