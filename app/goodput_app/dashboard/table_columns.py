"""The tables of the dashboard as `tables.toml` has them."""

import tomllib
from functools import cache
from pathlib import Path

FILE = Path(__file__).parent / "tables.toml"


@cache
def _tables() -> dict[str, dict[str, dict[str, str]]]:
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def headers(table: str) -> dict[str, str]:
    """Return the columns of a table with their headers, in order; table: such as `health.nodes`."""
    module, _, name = table.partition(".")
    return _tables()[module][name]
