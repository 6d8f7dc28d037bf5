"""The true ledger of the fleet, and notes of what was put into it."""
