"""The proof of a report: the same report made anew from its rows, and every number compared."""
