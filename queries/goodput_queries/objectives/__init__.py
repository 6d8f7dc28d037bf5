"""Objectives that a site declares: of goodput, and of serving latency."""
