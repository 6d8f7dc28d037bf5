"""Client of Prometheus' HTTP API and parser of its answers, live or recorded."""
