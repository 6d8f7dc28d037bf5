"""Polled sources: the scheduler, followed files, their configuration and status."""
