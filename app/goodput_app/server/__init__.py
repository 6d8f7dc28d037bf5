"""The process of `goodput serve`: routes, metrics, background work."""
