"""Several systems on the same utterances: whose the errors are, and their order."""
