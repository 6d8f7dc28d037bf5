"""SQL of people, from the Query page and from `/api/v1`: their rows, their turn, the audit log."""
