"""The run: calls are made, paced and shown as they go."""
