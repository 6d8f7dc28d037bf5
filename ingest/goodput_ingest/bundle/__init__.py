"""One file with the evidence of a time range or a run, which opens elsewhere."""
