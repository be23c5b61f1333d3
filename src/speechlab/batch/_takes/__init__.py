"""Takes: each line of a table is recognized and measured, and spoken again where something is wrong with it."""
