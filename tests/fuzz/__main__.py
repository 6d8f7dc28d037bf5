"""`make fuzz`: mutated files of every source through the real ingest, then build and `check`.

    python -m tests.fuzz --files 2000 --seed 1

Reported are exceptions that no source should raise, files that take over 10 CPU s or 500 MB, and
checks that fail. Each culprit is kept with its seed; the same seed gives the same files again, and
another seed others: several processes, a seed each, share a large run. `fuzz-files-SEED.csv` has a
line for each file with its CPU seconds and its peak memory.
"""

import argparse
import csv
import json
import os
import queue
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from tests.fuzz.worker import FILE_MAX_S, made

FILES_PER_BATCH = 1_000  # files on one database, in one process
STUCK_S = 6 * FILE_MAX_S  # after which a process is ended
BUILD_STUCK_S = 1_200.0
# each thread reserves room of addresses, which is what limits a process, for its own allocations
FEW_THREADS = {"MALLOC_ARENA_MAX": "2", "POLARS_MAX_THREADS": "2"}
NUMBERS = re.compile(r"\d+")
PLACE = re.compile(r"unexpected (\w+ at [\w.]+:\d+)|^(hog: took)|^(check [\w. ]+):")


@dataclass(frozen=True)
class Batch:
    """Files that go into one database: numbers from first to before last, of one seed."""

    seed: int
    first: int
    last: int


@dataclass
class Report:
    """What a run found; `kinds` counts culprits by class and place.

    listed: a row a file: number, name of the recorded file, CPU seconds, peak memory in MiB.
    """

    listed: list[tuple[int, str, float, int]] = field(default_factory=list)
    files: int = 0
    batches: int = 0
    kinds: Counter[str] = field(default_factory=Counter)

    def note(self, case):
        """Count what a file took."""
        self.files += 1
        mib = case["peak_bytes"] >> 20
        self.listed.append((case["number"], case["origin"], case["cpu_s"], mib))

    def add(self, problem):
        """Count a problem; return whether it is the first of its kind."""
        found = PLACE.search(problem)
        kind = next(filter(None, found.groups())) if found else NUMBERS.sub("0", problem)[:120]
        self.kinds[kind] += 1
        return self.kinds[kind] == 1


def main(arguments):
    """Run; return 1 where something was found."""
    about = __doc__.splitlines()[0]
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=about)
    parser.add_argument("--files", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first file (0)")
    parser.add_argument(
        "--culprits", type=Path, default=Path("fuzz-culprits"), help="folder for what was found"
    )
    options = parser.parse_args(arguments)
    report, began = Report(), time.monotonic()
    last = options.first + options.files
    for first in range(options.first, last, FILES_PER_BATCH):
        batch = Batch(options.seed, first, min(first + FILES_PER_BATCH, last))
        _run_batch(batch, options.culprits, report)
        _say(
            f"{report.files:,} files, {report.batches:,} builds, "
            f"{sum(report.kinds.values()):,} problems of {len(report.kinds)} kinds, "
            f"{time.monotonic() - began:,.0f} s"
        )
    for kind, count in report.kinds.most_common():
        _say(f"{count:6,d}  {kind}")
    _write_files(options.culprits.with_name(f"fuzz-files-{options.seed}.csv"), report)
    return 1 if report.kinds else 0


def _write_files(path, report):
    """Write what each file took."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("number", "origin", "cpu_s", "peak_mib"))
        rows.writerows(report.listed)


def _run_batch(batch, culprits, report):
    """Run a batch, in a new process after each file that ended one."""
    rest = batch
    while rest.first < rest.last:
        began, problem = _run_process(rest, culprits, report)
        if not problem:
            return
        if began is None:
            raise RuntimeError(problem)
        if began == "build":
            _keep_batch(rest, [problem], culprits, report)
            return
        report.files += 1
        _keep(batch.seed, int(began), problem, culprits, report)
        rest = replace(rest, first=int(began) + 1)


def _run_process(batch, culprits, report):
    """Return what the process began last, and what ended it; nothing where it came to its end."""
    began = None
    with tempfile.TemporaryDirectory(prefix="goodput-fuzz-") as folder:
        log, inbox = Path(folder, "stderr"), Path(folder, "files")
        inbox.mkdir()
        numbers = (batch.seed, batch.first, batch.last)
        command = [sys.executable, "-m", "tests.fuzz.worker", *map(str, numbers), str(inbox)]
        with log.open("wb") as stderr:
            env = {**os.environ, **FEW_THREADS}
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, env=env)
        lines = _lines(process)
        while True:
            patience_s = BUILD_STUCK_S if began in {None, "build"} else STUCK_S
            try:
                line = lines.get(timeout=patience_s)
            except queue.Empty:
                process.kill()
                process.wait()
                return began, f"hog: took over {patience_s:g} s"
            if line is None:
                break
            if "begins" in line:
                began = line["begins"]
            elif "case" in line:
                _note(batch.seed, line["case"], culprits, report)
            elif "build" in line:
                report.batches += 1
                if line["build"]:
                    _keep_batch(batch, line["build"], culprits, report)
        code = process.wait()
        said = log.read_text(errors="replace").strip().splitlines()[-1:]
        return began, f"the process ended with {code}: {''.join(said)}" if code else ""


def _lines(process):
    """Return what a process prints, line by line as it comes; None at the end."""
    found = queue.Queue()

    def read():
        for line in process.stdout or ():
            found.put(json.loads(line))
        found.put(None)

    threading.Thread(target=read, daemon=True).start()
    return found


def _note(seed, case, culprits, report):
    report.note(case)
    for problem in case["problems"]:
        _keep(seed, case["number"], problem, culprits, report)


def _keep(seed, number, problem, culprits, report):
    """Write the first file of each kind of problem, and say how to get it again."""
    if not report.add(problem):
        return
    case, content = made(seed, number)
    culprits.mkdir(parents=True, exist_ok=True)
    file = culprits / f"{seed}-{case.name}"
    file.write_bytes(content)
    reported = asdict(case) | {"seed": seed, "problems": [problem]}
    file.with_name(f"{file.name}.why.json").write_text(json.dumps(reported, indent=1))
    _say(f"{file}: {problem}")


def _keep_batch(batch, problems, culprits, report):
    """Write all files of a batch whose build or checks fail, to be ingested together again."""
    folder = culprits / f"{batch.seed}-batch-{batch.first}-{batch.last}"
    first_ones = [problem for problem in problems if report.add(problem)]
    if not first_ones:
        return
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(batch.first, batch.last):
        case, content = made(batch.seed, number)
        (folder / case.name).write_bytes(content)
    (folder / ".why.txt").write_text("\n".join(problems) + "\n")
    for problem in first_ones:
        _say(f"{folder}: {problem}")


def _say(text):
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
