"""Which GPU each job run held."""
