"""Segments drawn over their recording, and edited."""
