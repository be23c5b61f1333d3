"""Shared parts of all widgets: modules joined into one text, live views, and the elements of a page."""
