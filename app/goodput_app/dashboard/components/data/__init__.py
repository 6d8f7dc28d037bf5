"""Parts of the Data and Query pages."""
