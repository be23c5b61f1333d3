"""Routes: one file for each operation of the contract."""
