"""The clients, their synchronous wrappers, and the functions that batches need."""
