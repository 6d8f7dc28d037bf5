"""Recorded evidence in the order of time, through the path of live sources."""
