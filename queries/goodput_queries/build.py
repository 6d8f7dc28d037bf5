"""Building the ledger."""
