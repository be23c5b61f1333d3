"""Commands for one thing each: a text spoken, recordings transcribed, texts translated, voices listed."""
