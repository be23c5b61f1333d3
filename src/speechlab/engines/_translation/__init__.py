"""Translators: language models, and their prompts."""
