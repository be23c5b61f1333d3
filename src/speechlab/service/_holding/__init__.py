"""What the service holds for its peers: bytes in one budget, and the pace of those who send and read."""
