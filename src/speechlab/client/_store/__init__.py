"""Replies kept in a store, and replayed from it."""
