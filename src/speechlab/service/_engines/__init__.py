"""The engines, their queues, and the turn of an operation at an engine."""
