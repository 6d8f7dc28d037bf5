"""Parts of the pages of findings and waste."""
