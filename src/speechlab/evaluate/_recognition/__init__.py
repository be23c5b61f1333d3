"""Studies of recognition: services and settings side by side, noise, hotwords, and what goes wrong."""
