"""Containers and codecs: recognised, decoded, encoded, streamed."""
