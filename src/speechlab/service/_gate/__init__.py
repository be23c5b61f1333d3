"""The way in: keys, limits and handshakes are checked here."""
