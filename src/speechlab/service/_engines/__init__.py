"""The engines, a queue for each, and an operation's turn at one."""
