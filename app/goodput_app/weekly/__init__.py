"""The weekly report, and change against an earlier window, for pages and commands."""
