"""Weights that install as packages, joined and checked."""
