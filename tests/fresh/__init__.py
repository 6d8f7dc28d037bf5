"""What a newcomer does, on a machine that has nothing of the project: `make fresh`.

Standard library only: it runs before any package is installed.
"""
