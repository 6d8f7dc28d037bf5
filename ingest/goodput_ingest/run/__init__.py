"""Ingesting files: finding them, unpacking archives, checking times, loading."""
