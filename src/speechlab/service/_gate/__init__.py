"""Middleware that checks hosts, keys and handshakes before any route."""
