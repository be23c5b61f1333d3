"""Weights from installed packages, joined and checked."""
