"""Tables of errors: scored rows of one system or of two systems."""
