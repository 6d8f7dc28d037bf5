"""The SQL files: their headers and the order of the build."""
