"""What the sources of the fleet would have written, in their formats."""
