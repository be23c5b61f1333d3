"""Engines in service: one queue for each, and the voices they speak with."""
