"""A blind listening test: its questions and key, its sounds, the widget and the page."""
