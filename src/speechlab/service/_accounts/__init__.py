"""Accounts: keys, limits, usage and connections."""
