"""Worker processes with limits, in which untrusted recordings are decoded and texts are read."""
