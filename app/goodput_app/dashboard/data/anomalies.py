"""What differs from what it should be: gaps of whole gangs, and those that come back regularly."""

from goodput_app.dashboard.data.marts import mart

ROWS_SHOWN = 1_000


# all_gaps, all_gpu_ms: of all of them; $1: the least length in seconds
gang_gaps = mart("gang_gaps")
periodic_gaps = mart("periodic_gaps")
