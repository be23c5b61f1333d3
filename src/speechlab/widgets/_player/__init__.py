"""The player of recordings and their segments."""
