"""The realtime session: messages, settings, the actions it asks for, and the protocol that decides."""
