"""Scheduling of attempts: one scheduler for each service with one key."""
