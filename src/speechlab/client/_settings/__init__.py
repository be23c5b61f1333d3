"""Settings of a client, and where they are found."""
