"""Plans: a table of rows becomes a list of calls, each with its key."""
