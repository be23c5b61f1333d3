"""Translators: prompts, and language models that follow them."""
