"""The outside world comes in: one module a source, each yielding batches for the store."""
