"""A row of a table outside of it: its other columns, and cards for narrow screens."""
