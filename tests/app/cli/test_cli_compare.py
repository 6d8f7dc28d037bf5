"""`goodput compare`: its exit codes, and its report in each format."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.app.command_line import run
from tests.queries.conftest import Evidence, at

from goodput_queries.storage.store import LocalStore

if TYPE_CHECKING:
    from pathlib import Path

NAME = "<b>|x\x1b[31m"
SLOWER = ("--fail-on", "slower=3%")


@pytest.fixture(scope="module")
def database(empty_database: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Give runs of one job: `old`, `new` (6 % slower, other commit), `same`, `hot` (throttled)."""
    path = tmp_path_factory.mktemp("compare") / "fleet.duckdb"
    path.write_bytes(empty_database.read_bytes())
    noise = np.random.default_rng(3).normal(1, 0.01, (4, 120))
    with contextlib.closing(LocalStore(path)) as store:
        evidence = Evidence(store)
        for place, (name, length) in enumerate(
            [("old", 2.0), ("new", 2.12), ("same", 2.0), ("hot", 2.2)]
        ):
            evidence.node(f"n{place}", 2)
            ends = 1000 * place + np.cumsum(length * noise[place])
            evidence.job(name, 1000 * place, float(ends[-1]), [f"n{place}"], 2, job_name=NAME)
            commit = json.dumps({"commit": "b2" if name == "new" else "a1"})
            events = [{"event": "job.start", "t": 1000 * place, "extra": commit}] + [
                {
                    "event": "step", "step": step + 1, "t": float(end),
                    "dur_s": float(length * noise[place, step]), "samples": 8.0, "extra": None,
                    "throttle_s": 0.2 if name == "hot" else 0.0,
                }
                for step, end in enumerate(ends)
            ]  # fmt: skip
            evidence.events(name, events, host=f"n{place}")
        store.build()
    return str(path)


def compared(database: str, *arguments: str):
    return run("compare", *arguments, "--db", database)


def test_a_slower_run_fails_with_the_difference_and_what_differs(database: str) -> None:
    found = compared(database, "old", "new", *SLOWER, "--format", "json")

    assert found.exit_code == 1
    assert found.stderr.startswith("failed (slower=3%): speed -5.")
    answer = json.loads(found.stdout)
    assert answer["verdicts"][0]["outcome"] == "failed"
    speed = next(row for row in answer["measures"] if row["measure"] == "Speed")
    assert speed["unit"] == "samples/s"
    assert (speed["count_a"], speed["counted"]) == (110, "steps")
    assert speed["low_ratio"] < 1 / 1.06 - 1 < speed["high_ratio"] < -0.03
    assert 0.005 < speed["spread_a_ratio"] < 0.015
    step = next(row for row in answer["measures"] if row["measure"] == "Step time")
    assert step["change_ratio"] == pytest.approx(1 / (1 + speed["change_ratio"]) - 1)
    differing = {
        row["attribute"]: (row["a"], row["b"])
        for row in answer["attributes"]
        if row["is_different"]
    }
    assert differing == {"commit": ("a1", "b2"), "node_names": ("n0", "n1")}


def test_an_equal_run_passes(database: str) -> None:
    found = compared(database, "old", "same", *SLOWER)

    assert found.exit_code == 0, found.output
    assert "Passed (slower=3%): speed " in found.stdout


def test_a_throttled_run_is_not_comparable_and_does_not_pass(database: str) -> None:
    found = compared(database, "old", "hot", *SLOWER)

    assert found.exit_code == 1
    assert found.stderr.startswith("not comparable (slower=3%): hot: throttling, ")
    assert "is not comparable" in found.stdout


def test_two_time_ranges_are_compared_by_workload(database: str) -> None:
    windows = [
        f"{at(begin).isoformat()}Z/{at(end).isoformat()}Z"
        for begin, end in ((0, 900), (1000, 1900))
    ]

    found = compared(database, *windows, *SLOWER, "--format", "json")

    assert found.exit_code == 1, found.output
    assert json.loads(found.stdout)["b"]["runs"] == 1


@pytest.mark.parametrize(
    ("suffix", "escaped"),
    [("html", "&lt;b&gt;|x\\x1b[31m"), ("md", r"\<b\>\|x\\x1b\[31m"), ("txt", "<b>|x\\x1b[31m")],
)
def test_a_report_is_written_in_the_format_of_its_name(
    database: str, tmp_path: Path, suffix: str, escaped: str
) -> None:
    """Names of jobs are not ours: nothing in them is markup."""
    out = tmp_path / f"report.{suffix}"

    found = compared(database, "old", "new", "--out", str(out))

    assert (found.exit_code, found.stdout) == (0, "")
    text = out.read_text()
    assert escaped in text
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("old", "new", "--fail-on", "slower=3"), "'slower=3' is not like slower=3%."),
        (("old", "new", "--fail-on", "faster=3%"), "is not like slower=3%."),
        (("now/now-1d", "new"), "the time range now/now-1d is empty."),
        (("old", "new", "--out", "report.pdf"), "say --format"),
        (("old", "new", "--run", "old"), "--run is of time ranges"),
    ],
)
def test_wrong_use_exits_with_2(database: str, arguments: tuple[str, ...], says: str) -> None:
    found = compared(database, *arguments)

    assert (found.exit_code, says in found.stderr) == (2, True), found.stderr


def test_an_unknown_run_is_a_stated_failure(database: str) -> None:
    found = compared(database, "old", "nwe")

    assert found.exit_code == 1
    assert "The ledger knows no run nwe; did you mean new?" in found.stderr
