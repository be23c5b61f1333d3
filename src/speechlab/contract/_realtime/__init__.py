"""The realtime session: messages, settings, actions, and the protocol as a state machine."""
