"""The definition of segment frames, and the conversion of times to whole microseconds."""
