"""What is reachable, enabled and missing, with the line to add."""
