"""Commands that answer a question with a report."""
