"""Error rates of texts with times: what was said when, and by whom."""
