"""Parts of the Cost page: the statement, prices, notes, what-if."""
