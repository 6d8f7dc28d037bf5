"""A made-up fleet with its serving engines, and `goodput demo`, which shows it."""
