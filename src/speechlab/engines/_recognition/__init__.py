"""Recognizers, and the times of the words of a known text, from the attention of Whisper."""
