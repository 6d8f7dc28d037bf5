"""How many rows DuckDB compresses and stores together."""

# Half of DuckDB's default row group. DuckDB compresses whole groups and stores them in place on
# arrival; smaller ones go through the write-ahead log and are written twice. Five minutes of a
# fleet fill one.
ROW_GROUP = 61_440
