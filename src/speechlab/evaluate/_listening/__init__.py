"""Listening tests: answer files read with their key, listeners screened, systems compared."""
