"""The database file: opening, locks, schema, migrations, access from other processes."""
