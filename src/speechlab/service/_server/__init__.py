"""The server process: sockets, protocols, start and end."""
