"""A statement as HTML, PDF, FOCUS, CSV and Parquet."""
