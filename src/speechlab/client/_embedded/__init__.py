"""The embedded service: its state on disk, its start, and the lease that keeps it running."""
