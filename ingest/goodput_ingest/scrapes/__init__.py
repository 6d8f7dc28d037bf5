"""Metrics pages of exporters, recorded in files or fetched from targets."""
