"""Kernel logs: Xid, SXid and GPUs that fell off the bus."""
