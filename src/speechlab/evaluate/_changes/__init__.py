"""A report compared with an earlier one: what changed, and whether by more than chance."""
