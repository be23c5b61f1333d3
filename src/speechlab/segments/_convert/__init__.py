"""Segment frames as other libraries hold them."""
