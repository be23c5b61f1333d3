"""Comparisons of a report with an earlier one: changes, and their significance."""
