"""The settings, and how they are put together."""
