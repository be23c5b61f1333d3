"""Checks of the realtime WebSocket, one file for each area."""
