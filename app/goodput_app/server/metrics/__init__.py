"""The numbers of the database for Prometheus, at `/metrics`."""
