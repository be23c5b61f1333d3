"""Who performs operations: a service of the contract, one of OpenAI's API, or functions; and their attempts."""
