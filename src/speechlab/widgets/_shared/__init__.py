"""What all widgets share: how modules become one text, how a live view takes its place, the elements of a page."""
