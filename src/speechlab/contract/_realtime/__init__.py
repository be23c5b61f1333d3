"""The realtime session: messages, settings, states."""
