"""What a day costs whom: lines, charges, closing, corrections, forecast."""
