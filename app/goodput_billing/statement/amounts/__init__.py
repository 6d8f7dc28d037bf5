"""From GPU time to money: charges, credits, rounding, rows and what they add up to."""
