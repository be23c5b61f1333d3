"""How well found segments agree with a reference, in time alone."""
