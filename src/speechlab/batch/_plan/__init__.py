"""Plans: the calls that a table needs, each with its key."""
