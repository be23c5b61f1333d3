"""Rules of one language: Japanese, Chinese, English."""
