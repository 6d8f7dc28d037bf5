"""What this process serves: its store, its replay, what it evaluates in the background."""
