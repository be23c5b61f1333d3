"""The study that watches many runs of another: its series, what changed, and its report."""
