"""Notifications of findings: who gets which, when, and what has been sent."""
