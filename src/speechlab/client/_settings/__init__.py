"""Settings of a client, and the lookup of their values."""
