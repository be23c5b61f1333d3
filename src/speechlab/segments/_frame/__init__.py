"""What a segment frame is, and how times become whole microseconds."""
