"""Checks of the HTTP operations, one file for each area."""
