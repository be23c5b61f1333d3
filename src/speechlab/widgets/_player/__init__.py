"""The player: a recording, its segments, and what plays them."""
