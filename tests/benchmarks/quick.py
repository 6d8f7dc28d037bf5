"""`make bench-quick`: a line of figures of this revision, appended to `record.jsonl`.

    python -m tests.benchmarks.quick --why "the reader checks signatures"

Times are CPU seconds, and are compared as multiples of the yardstick of their own run; those of
tests are as recorded in `tests/durations.csv` by the commit that the line names. Where a figure is
over 10 % worse than in the line before, nothing is appended without a reason.
"""

import argparse
import contextlib
import csv
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path

from tests.benchmarks import bench_pages, yardstick
from tests.benchmarks.bench_fleet import YARDSTICK_STEPS, Fleet, generate_files
from tests.benchmarks.meter import Meter, alone
from tests.fleets.generate import read_in

from goodput_queries.database import LocalStore

ROOT = Path(__file__).parents[2]
RECORD = Path(__file__).with_name("record.jsonl")
DURATIONS = ROOT / "tests" / "durations.csv"  # running all tests takes longer than the rest
GPUS, HOURS = 2_000, 12
STEPS = (YARDSTICK_STEPS, "2")
WARM, FILTERS = 3, 3
WORSE_RATIO = 1.1
LEAST_S = 0.2  # a time below is not judged: it is mostly chance
PRODUCT, TESTS = ("app", "ingest", "queries"), ("tests",)


def measure(folder, gpus, hours, run):
    """Return the figures by name; those in CPU seconds end with ` s`."""
    found = {"yardstick s": yardstick.measure("", yardstick.ROWS, run).cost.cpu_s}
    for steps in STEPS:
        fleet = Fleet(folder / steps, gpus, hours, steps)
        of = f"steps of {steps} s"
        run(generate_files, fleet)
        found |= {f"{of}, {name}": value for name, value in run(_work, fleet).items()}
        found[f"{of}, peak MB"] = found.pop(f"{of}, peak bytes") // 1_000_000
        if steps != YARDSTICK_STEPS:
            of_yardstick = found[f"steps of {YARDSTICK_STEPS} s, full ledger s"]
            found[f"{of}, full ledger to 60 s"] = found[f"{of}, full ledger s"] / of_yardstick
    pages = run(bench_pages.pages, fleet.database, WARM, FILTERS)
    for page, draws in pages["pages"].items():
        found[f"page {page}, first s"] = draws.first.cpu_s
        found[f"page {page}, warm s"] = draws.warm.cpu_s
    found["findings s"] = pages["findings"].cpu_s
    found |= {f"tests, {tier}, recorded s": cpu_s for tier, cpu_s in _durations().items()}
    found["lines of code"], found["lines of tests"] = _lines(PRODUCT), _lines(TESTS)
    return {name: round(value, 3) for name, value in found.items()}


def worse(before, now):
    """Return the figures that are over 10 % worse than before, each with both values."""
    speed = now["yardstick s"] / before["yardstick s"]
    found = []
    for name in (before.keys() & now.keys()) - {"yardstick s"}:
        is_time = name.endswith(" s")
        if is_time and max(before[name], now[name]) < LEAST_S:
            continue
        least = before[name] * (speed if is_time and "recorded" not in name else 1)
        if now[name] > WORSE_RATIO * least:
            found.append(f"{name}: {before[name]:g} -> {now[name]:g}")
    return sorted(found)


def _work(fleet):
    """Read the fleet and build its ledger; return what it took and how large it is."""
    with Meter() as opening:
        store = LocalStore(fleet.database)
    with contextlib.closing(store):
        with Meter() as reading:
            read_in(store, fleet.files)
        with Meter() as building:
            store.build(is_full=True)
        counts = {
            name: int(store.read(f"select count(*) from {table}").item())
            for name, table in (
                ("events", "raw.job_events"), ("segments", "intermediate.int_ledger_segments"),
                ("amounts", "intermediate.int_step_amounts"))
        }  # fmt: skip
    return {
        "new database s": opening.cost.cpu_s,
        "ingest s": reading.cost.cpu_s,
        "full ledger s": building.cost.cpu_s,
        "peak bytes": building.cost.peak_bytes or 0,
        "file MB": fleet.database.stat().st_size // 1_000_000,
        **counts,
    }


def _durations():
    """Return the recorded CPU seconds of the tests by tier."""
    found = defaultdict(float)
    with DURATIONS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found[row["tier"]] += float(row["cpu_s"])
    return found


def _lines(folders):
    files = _git("ls-files", *folders).splitlines()
    texts = (ROOT / file for file in files if file.endswith((".py", ".sql")))
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in texts)


def _git(*arguments):
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def main(arguments=None):
    """Measure, compare with the line before, and append; raises SystemExit where one is worse."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--gpus", type=int, default=GPUS)
    parser.add_argument("--hours", type=int, default=HOURS)
    parser.add_argument("--why", default="", help="why a figure is worse than before")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(Path(folder), chosen.gpus, chosen.hours, alone)
    scale = f"{chosen.gpus} GPUs x {chosen.hours} h"
    lines = [json.loads(line) for line in RECORD.read_text(encoding="utf-8").splitlines()]
    before = [line for line in lines if line["scale"] == scale]
    found = worse(before[-1]["figures"], figures) if before else []
    sys.stdout.writelines(f"{name:40} {value:>12,.2f}\n" for name, value in figures.items())
    sys.stdout.writelines(f"worse: {one}\n" for one in found)
    line = {
        "commit": _git("rev-parse", "--short", "HEAD"),
        "date": datetime.now(UTC).date().isoformat(), "scale": scale,
        "durations": _git("log", "-1", "--format=%h", "--", str(DURATIONS)),
        **({"why": chosen.why} if chosen.why else {}), "figures": figures,
    }  # fmt: skip
    if found and not chosen.why:
        sys.stdout.write(json.dumps(line) + "\n")
        raise SystemExit("figures are over 10 % worse: say why with --why (make: WHY=...)")
    with RECORD.open("a", encoding="utf-8", newline="\n") as file:
        file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    from tests.benchmarks import quick  # by its name, under which a process of a work finds it

    quick.main()
