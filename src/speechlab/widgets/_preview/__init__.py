"""The preview of a batch."""
