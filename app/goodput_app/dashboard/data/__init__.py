"""Cached reads of marts: the only bridge from pages to the database."""
