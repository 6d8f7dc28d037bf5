"""The name of the package where it is published; the command and the modules are called goodput."""

from importlib import metadata

NAME = "goodput-ledger"


def version() -> str:
    """Return the version that is installed."""
    return metadata.version(NAME)
