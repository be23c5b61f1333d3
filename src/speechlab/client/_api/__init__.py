"""The clients, their faces for scripts, and what batches may ask of them."""
