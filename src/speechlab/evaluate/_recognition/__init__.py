"""Studies of recognition: services and settings side by side, noise, hotwords, and suspect hypotheses."""
