"""The database as files: the raw contract, the ledger's views, the one module that opens DuckDB."""
