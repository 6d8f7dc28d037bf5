"""Rows of raw tables: batches, loading, plausible time, forgetting, retention."""
