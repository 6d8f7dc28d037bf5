"""Parts of the pages of runs: all, one, two beside each other."""
