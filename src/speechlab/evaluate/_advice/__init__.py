"""Reports of studies of speech and their answers: what decides, what could overturn it, and the words for it."""
