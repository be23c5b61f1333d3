"""Middleware that checks hosts, keys and handshakes before all routes."""
