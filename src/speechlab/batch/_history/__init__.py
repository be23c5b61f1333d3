"""Earlier runs: loaded, compared and verified."""
