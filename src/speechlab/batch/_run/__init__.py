"""Execution of plans: calls, rules for stopping, and progress."""
