"""Delivering statements: files, mail, webhook, on a schedule."""
