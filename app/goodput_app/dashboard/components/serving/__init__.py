"""Parts of the Serving page."""
