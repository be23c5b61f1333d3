"""Keeping replies in a store, and replaying them."""
