"""Running a plan: calls are made, paced, limited by rules, and shown as they end."""
