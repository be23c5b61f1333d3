"""Rules of single languages (Japanese, Chinese, English), and texts as they are spoken."""
