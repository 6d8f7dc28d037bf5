"""Inspector logs, plain and verbose, and what others would do with them.

Ours reads, checks, brings into base units and drops repeats; the alternatives come to a table of
the same fields or load the lines as they are, without checks, keys or rejects.
"""

import contextlib
import json
from functools import partial

import duckdb
import polars as pl
from tests.benchmarks.formats import Alternative, Files, Format

START_US = 1_795_175_064_709_880
FILE_BYTES = 100_000_000  # a process's log; a folder has many
CHANNELS = 24  # of an H200
OPERATIONS = ("AllReduce", "AllGather", "ReduceScatter", "Broadcast")


def events(**first):
    """Return an event of each channel, each a little later than the one before."""
    return [
        {"channel_id": channel, **{name: at + channel for name, at in first.items()}}
        for channel in range(CHANNELS)
    ]


def record(number, pid, *, is_verbose):
    """Return a line as the 2.30.7 plugin writes it."""
    at = START_US + 500 * number
    perf = {
        "coll": OPERATIONS[number % 4],
        "coll_sn": number // 4,
        "coll_msg_size_bytes": 1024 * (1 + number % 100_000),
        "coll_exec_time_us": 40 + number % 5_000,
        "coll_timing_source": "kernel_gpu",
        "coll_algobw_gbs": 222.222222,
        "coll_busbw_gbs": 333.333333,
    }
    if is_verbose:
        perf["event_trace_sn"] = {
            "coll_start_sn": 1, "coll_stop_sn": 2,
            "kernel_events": events(kernel_start_sn=3, kernel_stop_sn=30, kernel_record_sn=60),
        }  # fmt: skip
        kernels = events(
            kernel_start_ts=at - 880, kernel_stop_ts=at - 100, kernel_record_ts=at - 101
        )
        perf["event_trace_ts"] = {
            "coll_start_ts": at - 900, "coll_stop_ts": at - 899, "kernel_events": kernels,
        }  # fmt: skip
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


def write_logs(folder, size_bytes, *, is_verbose):
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


def polars_read_ndjson(logs, folder):
    """Read each file at once, types guessed, and write the flat fields as Parquet."""
    for file in sorted(logs.iterdir()):
        frame = pl.read_ndjson(file)
        frame.unnest("header", "metadata", "coll_perf").write_parquet(
            folder / f"{file.name}.parquet"
        )


def duckdb_read_json(logs, folder):
    """Load the lines into a table of structs."""
    with contextlib.closing(duckdb.connect(folder / "theirs.duckdb")) as connection:
        connection.execute(
            "create table records as select * from read_json($1, format = 'newline_delimited')",
            [str(logs / "*.log")],
        )


def _logs(name, *, is_verbose):
    alternatives = (
        Alternative("Polars read_ndjson (flat)", polars_read_ndjson),
        Alternative("DuckDB read_json (structs)", duckdb_read_json),
    )
    return Files(
        Format(
            name=f"Inspector logs, {name}",
            source="nccl-inspector",
            unit="MB",
            per_unit=1e6,
            budget_per_s=150e6,
            alternatives=alternatives,
            full=300_000_000,
        ),
        partial(write_logs, is_verbose=is_verbose),
    )


PLAIN, VERBOSE = _logs("plain", is_verbose=False), _logs("verbose", is_verbose=True)
