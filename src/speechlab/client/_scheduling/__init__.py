"""When an attempt is sent: one scheduler for each service with one key."""
