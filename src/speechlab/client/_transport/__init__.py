"""One request to the service: sent, limited, repeated, its reply read."""
