"""Inspector logs end to end into the DuckDB file, beside what others would do with them.

    python tests/benchmarks/bench_inspector.py --megabytes 300

Prints a row for plain and one for verbose records: work, budget, ours, the alternatives. Ours
reads, checks, brings into base units, drops repeats and commits; the alternatives come to a table
of the same fields (json + pandas, polars.read_ndjson) or load the lines as they are (DuckDB
read_json), without checks, keys or rejects.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl

from goodput_ingest.load import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries.store import LocalStore

if TYPE_CHECKING:
    from collections.abc import Callable

BUDGET_BYTES_PER_S = 150e6
START_US = 1_795_175_064_709_880
FILE_BYTES = 100_000_000  # a process's log; a folder has many
CHANNELS = 24  # of an H200
OPERATIONS = ("AllReduce", "AllGather", "ReduceScatter", "Broadcast")


def record(number: int, pid: int, *, is_verbose: bool) -> str:
    """Return a line as the 2.30.7 plugin writes it."""
    at = START_US + 500 * number
    perf: dict[str, Any] = {
        "coll": OPERATIONS[number % 4],
        "coll_sn": number // 4,
        "coll_msg_size_bytes": 1024 * (1 + number % 100_000),
        "coll_exec_time_us": 40 + number % 5_000,
        "coll_timing_source": "kernel_gpu",
        "coll_algobw_gbs": 222.222222,
        "coll_busbw_gbs": 333.333333,
    }
    if is_verbose:
        events = range(CHANNELS)
        perf["event_trace_sn"] = {
            "coll_start_sn": 1,
            "coll_stop_sn": 2,
            "kernel_events": [
                {
                    "channel_id": c,
                    "kernel_start_sn": 3 + c,
                    "kernel_stop_sn": 30 + c,
                    "kernel_record_sn": 60 + c,
                }
                for c in events
            ],
        }
        perf["event_trace_ts"] = {
            "coll_start_ts": at - 900,
            "coll_stop_ts": at - 899,
            "kernel_events": [
                {
                    "channel_id": c,
                    "kernel_start_ts": at - 880 + c,
                    "kernel_stop_ts": at - 100 + c,
                    "kernel_record_ts": at - 101 + c,
                }
                for c in events
            ],
        }
    header = {"id": "0x9af1c2d3e4b5a6", "comm_name": "dp group", "rank": pid % 8}
    metadata = {
        "inspector_output_format_version": "v4.0",
        "git_rev": "v2.30.7-1",
        "rec_mechanism": "nccl_profiler_interface",
        "dump_timestamp_us": at,
        "hostname": "gpu-a0001",
        "pid": pid,
    }
    whole = {"header": header | {"n_ranks": 8, "nnodes": 1}, "metadata": metadata}
    return json.dumps(whole | {"coll_perf": perf}, separators=(",", ":"))


def write_logs(folder: Path, size_bytes: int, *, is_verbose: bool) -> int:
    """Write logs of about so many bytes, one a process; return their true size."""
    folder.mkdir()
    total, number = 0, 0
    for pid in range(1000, 1000 + -(-size_bytes // FILE_BYTES)):
        written = 0
        with (folder / f"gpu-a0001-pid{pid}.log").open("w") as out:
            while written < min(FILE_BYTES, size_bytes - total):
                written += out.write(record(number, pid, is_verbose=is_verbose) + "\n")
                number += 1
        total += written
    return total


def ours(logs: Path, folder: Path) -> float:
    """Read the folder into a database; return seconds without those of making its tables."""
    with contextlib.closing(LocalStore(folder / "ours.duckdb")) as store:
        start = time.perf_counter()
        summary = ingest(store, "nccl-inspector", [logs], ReadOptions())
        seconds = time.perf_counter() - start
    if summary.rejects or not summary.rows_new:
        raise SystemExit(f"the logs were not read whole: {summary}")
    return seconds


def json_and_pandas(logs: Path, folder: Path) -> float:
    """Parse line by line and flatten, as the plugin's own exporter does."""
    import pandas as pd  # noqa: PLC0415 -- an alternative, not a dependency

    start = time.perf_counter()
    for file in sorted(logs.iterdir()):
        with file.open() as lines:
            frame = pd.json_normalize([json.loads(line) for line in lines])
        frame.to_pickle(folder / f"{file.name}.pickle")
    return time.perf_counter() - start


def polars_read_ndjson(logs: Path, folder: Path) -> float:
    """Read each file at once, types guessed, and write the flat fields as Parquet."""
    start = time.perf_counter()
    for file in sorted(logs.iterdir()):
        frame = pl.read_ndjson(file)
        frame.unnest("header", "metadata", "coll_perf").write_parquet(
            folder / f"{file.name}.parquet"
        )
    return time.perf_counter() - start


def duckdb_read_json(logs: Path, folder: Path) -> float:
    """Load the lines into a table of structs."""
    start = time.perf_counter()
    with contextlib.closing(duckdb.connect(folder / "theirs.duckdb")) as connection:
        connection.execute(
            "create table records as select * from read_json($1, format = 'newline_delimited')",
            [str(logs / "*.log")],
        )
    return time.perf_counter() - start


def bytes_per_s(work: Callable[[Path, Path], float], logs: Path, size: int) -> float:
    """Return the speed of one run into an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        return size / work(logs, Path(folder))


def main() -> None:
    """Print the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=300)
    parser.add_argument("--repeats", type=int, default=3, help="The best of so many runs counts.")
    arguments = parser.parse_args()
    alternatives = (json_and_pandas, polars_read_ndjson, duckdb_read_json)
    for is_verbose in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            logs = Path(folder, "logs")
            size = write_logs(logs, arguments.megabytes * 1_000_000, is_verbose=is_verbose)
            best = max(bytes_per_s(ours, logs, size) for _ in range(arguments.repeats))
            others = []
            for work in alternatives:
                try:
                    speed = f"{bytes_per_s(work, logs, size) / 1e6:.0f}"
                except ImportError:
                    speed = "not installed"
                others.append(f"{work.__name__} {speed}")
        kind = "verbose" if is_verbose else "plain"
        print(  # noqa: T201 -- a table is what it is for
            f"| Inspector logs, {kind}, {size / 1e6:.0f} MB | {BUDGET_BYTES_PER_S / 1e6:.0f} MB/s "
            f"| {best / 1e6:.0f} MB/s | {', '.join(others)} |"
        )


if __name__ == "__main__":
    main()
