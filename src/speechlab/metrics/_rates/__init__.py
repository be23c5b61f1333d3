"""Error rates: of one list, of a table, by group, compared."""
