"""The table: a row a work, with its budget, ours, the alternatives and how they compare."""

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version

from tests.benchmarks.meter import Cost

COLUMNS = ("work", "budget", "met", "ours", "wall s", "CPU s", "alternatives", "ratio")
TOOLS = ("duckdb", "polars", "pandas", "chdb", "pyarrow")


@dataclass(frozen=True)
class Other:
    """An alternative at the same work, or at the part of it that it offers.

    cost: None where it did not come to an end. note: why, or that its time is projected.
    """

    name: str
    cost: Cost | None
    note: str = ""

    def __str__(self):
        """Return the alternative as the table has it."""
        if self.cost is None:
            return f"{self.name}: {self.note}"
        note = f", {self.note}" if self.note else ""
        return f"{self.name} {number(self.cost.wall_s)} s (CPU {number(self.cost.cpu_s)}{note})"


@dataclass(frozen=True)
class Row:
    """One work. is_met: None where the budget is for another scale, or there is none."""

    work: str
    ours: str
    cost: Cost | None = None
    budget: str = "-"
    is_met: bool | None = None
    others: Sequence[Other] = field(default=())

    def __str__(self):
        """Return the row in Markdown."""
        cells = (
            self.work, self.budget, {True: "yes", False: "**no**", None: "-"}[self.is_met],
            self.ours, "-" if self.cost is None else number(self.cost.wall_s),
            "-" if self.cost is None else number(self.cost.cpu_s),
            "; ".join(map(str, self.others)) or "-", self._ratio(),
        )  # fmt: skip
        return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"

    def _ratio(self):
        """Return the time of the fastest alternative over ours: above 1 ours is faster."""
        costs = [other.cost for other in self.others if other.cost is not None]
        if self.cost is None or not costs:
            return "-"
        best = min(costs, key=lambda cost: cost.wall_s)
        of_cpu = number(best.cpu_s / max(self.cost.cpu_s, 1e-9))
        return f"{number(best.wall_s / max(self.cost.wall_s, 1e-9))} (CPU {of_cpu})"


def header():
    """Return the first two lines of the table."""
    return f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}"


def number(value):
    """Return a figure with three digits that count."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.{1 if value >= 10 else 2 if value >= 0.1 else 3}f}"


def memory(size):
    """Return a size of memory as people write it."""
    return "peak not measured" if size is None else f"peak {size / 1e9:.2f} GB"


def machine():
    """Return what the figures hold for: cores, memory, versions."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    known = [f"{name} {found}" for name in TOOLS if (found := _version(name))]
    return (
        f"{os.cpu_count()} cores, {pages / 2**30:.0f} GiB, {platform.system()}, "
        f"Python {platform.python_version()}, {', '.join(known)}"
    )


def load():
    """Return the load average of the last minute."""
    return os.getloadavg()[0]


def busy(before):
    """Return how busy the machine was, in a sentence; `before`: its load as the run began."""
    after = load()
    said = f"load average {before:.1f} at the start, {after:.1f} at the end"
    if max(before, after) > (os.cpu_count() or 1) + 1:
        said += ": other processes were running, so that only CPU s is reliable"
    return f"{said}."


def _version(name):
    try:
        return version(name)
    except PackageNotFoundError:
        return None
