"""Several systems on the same utterances: causes of errors, and rankings."""
