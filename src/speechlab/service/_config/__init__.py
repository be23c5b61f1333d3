"""The settings, and their loading."""
