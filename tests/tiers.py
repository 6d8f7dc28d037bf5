"""Tiers of tests, and what each test costs.

pure: formats, figures, words; opens no database. database: rules of the ledger, storage, sources
into a database. program: pages, commands, server, access. `machine` and `slow` are marks that tests
bear themselves. `pytest -m pure` and so on runs one tier; `make test` runs the first three.

A test of the first three may take `LIMIT_CPU_S`: of its own call, and of the processes that it
waits for. Where others use the machine a CPU second does less, down to half: what is over the limit
is compared with a fixed piece of work at that moment, so that a busy machine fails no test.
"""

import csv
import functools
import os
import random
import statistics
import time
from collections import defaultdict
from pathlib import Path

import pytest

# before Polars is imported, which else has a thread a core: a process a core runs tests, and what
# few rows take goes into handing them from thread to thread
os.environ.setdefault("POLARS_MAX_THREADS", "1")

ROOT = Path(__file__).parents[1]
DURATIONS = ROOT / "tests" / "durations.csv"
LIMIT_CPU_S = 5.0
YARDSTICK_CPU_S = 0.05  # what `_yardstick` takes where the limit was set, with nothing beside
LARGE = ("machine", "slow")  # marks of tests without a limit
COST = "cpu_s"
PURE = (
    "tests/app/billing/test_charges.py", "tests/app/dashboard/figures",
    "tests/app/dashboard/test_formats.py", "tests/app/dashboard/test_groups_and_colours.py",
    "tests/app/text/test_glossary.py", "tests/ingest", "tests/test_documentation.py",
    "tests/test_sizes.py",
)  # fmt: skip
DATABASE = ("tests/external", "tests/google_histories", "tests/oracle", "tests/queries")
STORES = {"store", "new_store", "recorded_demo"}  # fixtures that open a database


def tier_of(item):
    """Return the tier of a test."""
    for mark in LARGE:
        if item.get_closest_marker(mark):
            return mark
    opens_database = not STORES.isdisjoint(getattr(item, "fixturenames", ()))
    tier = _tier_of_module(item.path)
    return "database" if tier == "pure" and opens_database else tier


@functools.cache
def _tier_of_module(path):
    place = path.relative_to(ROOT).as_posix()
    if place.startswith(PURE):
        return "pure"
    return "database" if place.startswith(DATABASE) else "program"


class Costs:
    """Marks tests with their tier, fails those that take too much, and writes what all took."""

    def __init__(self):
        self._cpu_s = defaultdict(float)
        self._tests = defaultdict(int)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items):
        """Mark each test, before `-m` chooses."""
        for item in items:
            if (tier := tier_of(item)) not in LARGE:
                item.add_marker(tier)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        """Fail a test over the limit, with what it took."""
        before = _cpu_s()
        result = yield
        took_s = _cpu_s() - before
        if tier_of(item) not in LARGE and took_s > LIMIT_CPU_S:
            slower = slowness()
            if took_s > LIMIT_CPU_S * slower:
                pytest.fail(
                    f"{item.nodeid} took {took_s:.1f} CPU s, at most {LIMIT_CPU_S:.0f} are "
                    f"allowed ({LIMIT_CPU_S * slower:.1f} on this machine now); "
                    "make it cheaper, or mark it machine or slow."
                )
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        """Note what a test took with its fixtures, for the process that writes the file."""
        item.user_properties.append(("tier", tier_of(item)))
        item.user_properties.append((COST, -_cpu_s()))
        return (yield)

    def pytest_runtest_logreport(self, report):
        """Add a test's cost to that of its module."""
        if report.when != "teardown":
            return
        noted = dict(report.user_properties)
        key = report.nodeid.partition("::")[0], str(noted.get("tier"))
        self._tests[key] += 1
        self._cpu_s[key] += float(str(noted.get(COST, 0)))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item, call):
        """Complete the cost at the test's end."""
        if call.when == "teardown":
            item.user_properties[:] = [
                (name, value + _cpu_s())
                if name == COST and isinstance(value, float)
                else (name, value)
                for name, value in item.user_properties
            ]
        return (yield)

    def pytest_sessionfinish(self, session):
        """Write what each module took, where `GOODPUT_DURATIONS` asks for it."""
        if "GOODPUT_DURATIONS" not in os.environ or hasattr(session.config, "workerinput"):
            return
        with DURATIONS.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(("tier", "cpu_s", "tests", "module"))
            for (module, tier), cpu_s in sorted(self._cpu_s.items(), key=lambda one: one[0][::-1]):
                writer.writerow((tier, f"{cpu_s:.1f}", self._tests[module, tier], module))


def costs():
    """Return the CPU seconds that each module took when the file was written, by its path."""
    took = defaultdict(float)
    with DURATIONS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            took[ROOT / row["module"]] += float(row[COST])
    return took


def slowness():
    """Return how many times longer than where the limit was set work takes now; at least 1."""
    return max(1.0, statistics.median(_yardstick() for _ in range(7)) / YARDSTICK_CPU_S)


def _yardstick():
    """Return the CPU seconds that a fixed piece of work takes now."""
    began = time.process_time()
    chance = random.Random(1)  # noqa: S311 -- the same numbers each time
    rows = sorted((chance.random(), number) for number in range(60_000))
    sums = defaultdict(float)
    for value, number in rows:
        sums[number % 997] += value
    return time.process_time() - began


def _cpu_s():
    """Return the CPU seconds of this process and of the processes that it has waited for."""
    return sum(os.times()[:4])
