"""Realtime sessions over a WebSocket, for ``await``."""
