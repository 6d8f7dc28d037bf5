"""The database as files: the raw contract, the ledger's views, and the one module that opens DuckDB."""
