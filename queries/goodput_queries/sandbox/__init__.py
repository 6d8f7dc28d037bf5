"""Selects of people, run on rows that they may see, in a process without files and network."""
