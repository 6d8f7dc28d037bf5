"""The SQL files: their headers (what a row is, grain, columns) and the order of the build."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

LAYERS = ("raw", "reference", "staging", "intermediate", "temp", "marts", "checks")
PASS_LAYER = "temp"  # tables of one connection, made anew for every pass over some hours
_DIRECTIVE = re.compile(
    r"^--\s*(?P<key>grain|keep|time|materialised|dirties|written_by)\s*:\s*(?P<value>.*)$"
)
_COLUMN = re.compile(r"^--\s*(?P<column>[a-z][a-z0-9_]*)\s*:\s*(?P<meaning>.*)$")


_COMMENT = re.compile(r"--[^\n]*")
_REFERENCE = re.compile(rf"\b({'|'.join(LAYERS)})\.(\w+)")


@dataclass(frozen=True)
class Model:
    """One SQL file: `layer.name`, its select (`create table` in raw), what its header says."""

    layer: str
    name: str
    sql: str
    description: str
    directives: dict[str, str]
    columns: dict[str, str]

    @property
    def qualified_name(self) -> str:
        """Return `layer.name`, which is the name of the table or view."""
        return f"{self.layer}.{self.name}"

    @property
    def grain(self) -> list[str]:
        """Return the columns that identify a row."""
        return [c.strip() for c in self.directives.get("grain", "").split(",") if c.strip()]

    @property
    def is_stored(self) -> bool:
        """Say whether it is a table rather than a view."""
        return (
            self.materialised is not None
            or "written_by" in self.directives
            or self.layer == PASS_LAYER
        )

    @property
    def materialised(self) -> str | None:
        """Return `full` or `hourly` where the stage is stored, None where it is a view."""
        value = self.directives.get("materialised")
        return value.split(",")[0].split(":")[0].split()[0] if value else None


def _header(text: str) -> tuple[str, dict[str, str], dict[str, str]]:
    description: list[str] = []
    directives: dict[str, str] = {}
    columns: dict[str, str] = {}
    current: str | None = None
    for line in text.splitlines():
        if not line.startswith("--"):
            break
        if match := _DIRECTIVE.match(line):
            directives[match["key"]] = match["value"].strip()
            current = None
        elif match := _COLUMN.match(line):
            current = match["column"]
            columns[current] = match["meaning"].strip()
        elif current is not None and line.startswith("--  "):
            columns[current] += " " + line.lstrip("- ").strip()
        else:
            description.append(line.removeprefix("--").strip())
    return " ".join(description).strip(), directives, columns


def _read(layer: str, file: Traversable) -> Model:
    text = file.read_text(encoding="utf-8")
    description, directives, columns = _header(text)
    if layer == "raw":
        columns = {
            m[1]: m[2].strip()
            for m in re.finditer(r"^\s{4}(\w+)\s[^\n]*?--\s*(.*)$", text, re.MULTILINE)
        }
    return Model(layer, file.name.removesuffix(".sql"), text, description, directives, columns)


@cache
def models(layer: str) -> dict[str, Model]:
    """Return the SQL files of a layer by name."""
    folder = files("goodput_queries") / layer
    found = sorted((f for f in folder.iterdir() if f.name.endswith(".sql")), key=lambda f: f.name)
    return {m.name: m for m in (_read(layer, f) for f in found)}


@cache
def reference_files() -> dict[str, str]:
    """Return the CSV facts by table name, with the path of each."""
    folder = files("goodput_queries") / "reference"
    return {
        f.name.removesuffix(".csv"): str(f)
        for f in sorted(folder.iterdir(), key=lambda f: f.name)
        if f.name.endswith(".csv")
    }


def macro_files() -> list[str]:
    """Return the text of the scalar macros, one definition per measure."""
    folder = files("goodput_queries") / "macros"
    return [f.read_text(encoding="utf-8") for f in sorted(folder.iterdir(), key=lambda f: f.name)]


def tables_read(sql: str) -> set[str]:
    """Return the `layer.name` references in a select; our SQL always writes the layer."""
    return {f"{layer}.{name}" for layer, name in _REFERENCE.findall(_COMMENT.sub("", sql))}


@cache
def build_order() -> list[Model]:
    """Return staging to checks in an order in which each finds what it reads."""
    known = {m.qualified_name: m for layer in LAYERS[2:] for m in models(layer).values()}
    graph = {name: (tables_read(m.sql) - {name}) & known.keys() for name, m in known.items()}
    return [known[name] for name in TopologicalSorter(graph).static_order()]


def pass_tables(model: Model) -> list[Model]:
    """Return the tables of a pass that a stage reads, each after those it reads itself."""
    by_name = {m.qualified_name: m for m in models(PASS_LAYER).values()}
    needed: set[str] = set()
    wanted = tables_read(model.sql) & by_name.keys()
    while wanted:
        needed |= wanted
        wanted = {t for n in wanted for t in tables_read(by_name[n].sql) & by_name.keys()} - needed
    return [m for m in build_order() if m.qualified_name in needed]
