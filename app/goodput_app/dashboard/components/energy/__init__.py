"""Parts of the Energy page."""
