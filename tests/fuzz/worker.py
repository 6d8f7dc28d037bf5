"""One batch of cases in one process: each file through the real ingest, then build and `check`.

A line of JSON is printed for each case when it begins and when it ends, so that whoever started
this process knows which file it hangs in or died of.
"""

import contextlib
import functools
import json
import random
import resource
import sys
import time
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from tests.fuzz.corpus import corpus
from tests.fuzz.mutations import mutated

from goodput_ingest.run import ingest
from goodput_ingest.run.unexpected import CAUGHT, unexpected
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.registry import sources
from goodput_queries.check import check
from goodput_queries.database import LocalStore
from goodput_queries.errors import GoodputError

MEMORY_MAX_BYTES = 500 * 1000 * 1000  # that a file may add
FILE_MAX_S = 10.0  # of a processor: the machine may have other work
BUILD_MAX_S = 300.0  # of a processor, for files of many years
ROOM_BYTES = 6 * 1024 * 1024 * 1024  # of addresses, beyond what the process begins with
DATABASE_MEMORY = "2GB"  # DuckDB knows the machine's memory, not the room: beyond it, it spills
OBSERVED_AT = datetime(2025, 8, 20, 15)  # noqa: DTZ001 -- moments are stored naive, in UTC
OPTIONS = ReadOptions("c", ZoneInfo("Europe/Berlin"), OBSERVED_AT, "n1")


@dataclass
class Case:
    """A mutated file and what became of it; `number` and seed give the same file again."""

    number: int
    origin: str
    changes: list[str]
    name: str
    cpu_s: float = 0.0
    peak_bytes: int = 0  # that it added to the process
    problems: list[str] = field(default_factory=list)


def made(seed, number):
    """Return a case and the bytes of its file."""
    chance = random.Random(f"{seed}-{number}")  # noqa: S311 -- chance, and no secret
    origin, golden = chance.choice(_corpus())
    content, changes = mutated(golden, chance)
    suffixes = Path(origin).name.removeprefix("input")  # by which some formats are recognised
    return Case(number, origin, changes, f"case{number}{suffixes}"), content


_corpus = functools.cache(corpus)


def run(store, case, content, folder):
    """Ingest one case's file and note what is wrong about how that went."""
    path = folder / case.name
    path.write_bytes(content)
    peak_before = _status("VmRSS")
    _forget_peak()
    began = time.process_time()
    try:
        # most as a folder would be read in; some under a name, as a person insists
        source = "auto" if case.number % 4 else list(sources())[case.number // 4 % len(sources())]
        with contextlib.suppress(GoodputError):
            summary = ingest.ingest(store, source, [path], OPTIONS)
            case.problems += summary.failed
    except MemoryError as error:
        case.problems.append(str(unexpected(case.name, error)))
    except CAUGHT as error:
        case.problems.append(str(unexpected(case.name, error)))
    case.cpu_s = round(time.process_time() - began, 3)
    case.peak_bytes = max(0, _status("VmHWM") - peak_before)
    if case.cpu_s > FILE_MAX_S:
        case.problems.append(f"hog: took {case.cpu_s:.1f} s")
    if case.peak_bytes > MEMORY_MAX_BYTES:
        case.problems.append(f"hog: took {case.peak_bytes >> 20} MiB")
    path.unlink()


def built_and_checked(store):
    """Build and check what was ingested; return what is wrong."""
    began = time.process_time()
    try:
        store.build()
        broken = check(store)
    except MemoryError as error:
        return [str(unexpected("build", error))]
    except CAUGHT as error:
        if isinstance(error, GoodputError):
            return [f"build: {str(error).splitlines()[0]}"]
        return [str(unexpected("build", error))]
    seconds = time.process_time() - began
    hog = [f"build: hog: took {seconds:.0f} s"] if seconds > BUILD_MAX_S else []
    return hog + [
        f"check {row['check']}: {row['violations']} rows, as {row['sample'][:300]}"
        for row in broken.iter_rows(named=True)
        if row["violations"]
    ]


def main(seed, first, last, folder):
    """Run the cases first..last-1 on one database; print a line for each step."""
    limit = _status("VmSize") + ROOM_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    # on disk, as a site has it: in memory, years of hours of a batch would fill the room
    with contextlib.closing(LocalStore(folder.with_name("fleet.duckdb"), threads=2)) as store:
        with store.cursor() as cursor:
            cursor.execute(f"set global memory_limit = '{DATABASE_MEMORY}'")
        for number in range(first, last):
            _say({"begins": number})
            case, content = made(seed, number)
            run(store, case, content, folder)
            _say({"case": asdict(case)})
        _say({"begins": "build"})
        _say({"build": built_and_checked(store)})


def _say(line):
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def _status(name):
    """Return a figure of the process in bytes: VmRSS is resident, VmHWM its peak."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    return 0


def _forget_peak():
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]), Path(sys.argv[4]))
