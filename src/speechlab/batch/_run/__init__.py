"""Running a plan: calls are made, limited by rules, and shown as they end."""
