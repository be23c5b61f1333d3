"""Rules for single languages (Japanese, Chinese, English), and readings of texts."""
