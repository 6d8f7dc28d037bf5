"""Ingestors: one module a source, each yielding batches for the store."""
