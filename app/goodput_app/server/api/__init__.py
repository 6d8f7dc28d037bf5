"""`/api/v1`: views and selects as JSON, CSV, Parquet and Arrow, and its OpenAPI document."""
