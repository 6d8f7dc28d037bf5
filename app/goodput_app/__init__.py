"""What people touch: dashboard, command line, server. The only package that knows streamlit."""

from goodput_app import allocators

allocators.tell()  # before polars and duckdb are loaded
