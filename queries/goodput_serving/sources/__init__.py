"""Serving engines: scrapes of their metrics, live and in files, and logs of their requests."""
