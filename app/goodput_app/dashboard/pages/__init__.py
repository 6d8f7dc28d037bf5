"""One file a page, one page a question."""
