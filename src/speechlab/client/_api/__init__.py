"""The clients, their faces for scripts, and the functions that batches need."""
