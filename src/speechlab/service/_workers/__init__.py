"""Worker processes with limits, in which untrusted recordings and texts are read."""
