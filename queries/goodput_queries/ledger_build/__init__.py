"""Building the ledger: what is dirty, and how each stage is materialised."""
