"""Formats, makers of their files, and what others do with them: less than ours, and named so."""

import contextlib
import json
import random
import re
from datetime import datetime, timedelta
from functools import partial

import duckdb
import polars as pl
from tests.benchmarks.formats import Format
from tests.ingest.golden_cases import golden_path

from goodput_ingest.gpu_metrics import COUNTERS_FILE
from goodput_ingest.source import ReadOptions

BENCH = ReadOptions(cluster="bench")
INTERVAL_S = 30
SEPARATOR = "\x1f"
SACCT_FIELDS = (
    *("Cluster", "JobID", "JobIDRaw", "DBIndex", "User", "Account", "QOS", "Partition"),
    *("Reservation", "State", "ExitCode", "DerivedExitCode", "Reason", "Submit", "Eligible"),
    *("Start", "End", "ElapsedRaw", "Suspended", "TimelimitRaw", "NNodes", "NodeList", "ReqTRES"),
    *("AllocTRES", "Flags", "Comment", "JobName"),
)
STATES = (*["COMPLETED"] * 8, "FAILED", "TIMEOUT", "CANCELLED by 1001")
NODES_OF_A_JOB = (1, 1, 1, 1, 2, 4, 16)
INSPECTOR_RECORD = golden_path("nccl_inspector/verbose_and_plain_of_two_versions/input.log")
OPERATIONS = ("AllReduce", "AllGather", "ReduceScatter", "Broadcast")
CHANNELS = 24  # of an H200
LOG_BYTES = 100_000_000  # a process's log; a folder has many
# what an exporter prints with its stock counters file (etc/default-counters.csv), less labels
OFF_BY_DEFAULT = re.compile(
    "SM_ACTIVE|SM_OCCUPANCY|ENFORCED|EVENT_REASONS|VIOLATION|PROF_NVLINK|EXP_|ECC_|REMAP_PENDING|DRIVER"
)
ALWAYS_0 = re.compile("XID|REMAP|REPLAY|VGPU")
LABELS = {
    "gpu": "{gpu}", "UUID": "GPU-6f0c1c2e-3b7a-4d51-{node:04x}-0d1c2b3a{gpu:04x}",
    "pci_bus_id": "00000000:1{gpu}:00.0", "device": "nvidia{gpu}",
    "modelName": "NVIDIA H100 80GB HBM3", "Hostname": "gpu-{node:04}",
    "DCGM_FI_DRIVER_VERSION": "570.124.06",
}  # fmt: skip
SAMPLE = re.compile(r"([a-zA-Z_:][\w:]*)\{(.*)\} (\S+)")
POINTS_PER_SERIES, START_S = 720, 1_787_234_539.482


def sacct_record(number, chance):
    """Return a line as `sacct -P` prints a job that ended."""
    submit = 1_790_000_000 + number // 3
    start, elapsed = submit + chance.randrange(3_000), chance.randrange(20, 90_000)
    nodes, first = chance.choice(NODES_OF_A_JOB), chance.randrange(1, 1_000)
    gpus = 8 * nodes if nodes > 1 else chance.choice((0, 1, 2, 4, 8))
    listed = f"node{first:04d}" if nodes == 1 else f"node[{first:04d}-{first + nodes - 1:04d}]"
    tracked = f"gres/gpu:h100={gpus},gres/gpu={gpus}," if gpus else ""
    tres = f"billing={gpus * 8},cpu={gpus * 16 or 4},{tracked}mem={gpus * 100 or 16}G,node={nodes}"
    values = (
        *("lab", number, number, 2_798_573_628_998_235_136 + number),
        *(f"user{chance.randrange(200)}", f"acct{chance.randrange(30)}", "normal", "gpu", ""),
        *(chance.choice(STATES), "0:0", "0:0", "None", submit, submit, start, start + elapsed),
        *(elapsed, "00:00:00", 1_440, nodes, listed, tres, tres, "STARTED_ON_SCHEDULE", ""),
        f"train-{chance.randrange(5_000)}",
    )
    return SEPARATOR.join(map(str, values))


def write_sacct(file, rows):
    """Write so many records of a made-up cluster, the same ones every time; return how many."""
    chance = random.Random(7)  # noqa: S311 -- a made-up cluster, no secret
    with file.open("w") as out:
        out.write(SEPARATOR.join(SACCT_FIELDS) + "\n")
        out.writelines(sacct_record(number, chance) + "\n" for number in range(1, rows + 1))
    return rows


def inspector_record(template, number, pid, *, is_verbose):
    """Return a line as the 2.30.7 plugin writes it, like a recorded one."""
    at = template["metadata"]["dump_timestamp_us"] + 500 * number
    perf = template["coll_perf"] | {
        "coll": OPERATIONS[number % 4], "coll_sn": number // 4,
        "coll_msg_size_bytes": 1024 * (1 + number % 100_000),
        "coll_exec_time_us": 40 + number % 5_000,
    }  # fmt: skip
    for of_events, moments in (
        ("event_trace_sn", {"start_sn": 3, "stop_sn": 30, "record_sn": 60}),
        ("event_trace_ts", {"start_ts": at - 880, "stop_ts": at - 100, "record_ts": at - 101}),
    ):
        events = [
            {"channel_id": n, **{f"kernel_{name}": when + n for name, when in moments.items()}}
            for n in range(CHANNELS)
        ]
        perf[of_events] = perf[of_events] | {"kernel_events": events}
        if not is_verbose:
            del perf[of_events]
    metadata = template["metadata"] | {"dump_timestamp_us": at, "pid": pid}
    record = {"header": template["header"], "metadata": metadata, "coll_perf": perf}
    return json.dumps(record, separators=(",", ":"))


def write_inspector(folder, size_bytes, *, is_verbose):
    """Write logs of about so many bytes, one a process; return their true size."""
    folder.mkdir()
    template = json.loads(INSPECTOR_RECORD.read_text().partition("\n")[0])
    total = number = 0
    for pid in range(1000, 1000 + -(-size_bytes // LOG_BYTES)):
        written = 0
        with (folder / f"gpu-a0001-pid{pid}.log").open("w") as out:
            while written < min(LOG_BYTES, size_bytes - total):
                line = inspector_record(template, number, pid, is_verbose=is_verbose)
                written += out.write(line + "\n")
                number += 1
        total += written
    return total


def fields():
    """Return the names of the exporter's stock counters."""
    names = [line.split(",")[0] for line in COUNTERS_FILE.read_text().splitlines()]
    return [n for n in names if n.startswith("DCGM") and not OFF_BY_DEFAULT.search(n)]


def value(field, number):
    """Return what an exporter could print for a field."""
    if ALWAYS_0.search(field):
        return "0"
    return f"{number % 997 / 997:.6f}" if "ACTIVE" in field else str(number % 100)


def labels_of(gpu):
    """Return the labels of a GPU's series, eight GPUs a node."""
    return {name: text.format(gpu=gpu % 8, node=gpu // 8) for name, text in LABELS.items()}


def write_scrapes(file, lines):
    """Write about so many lines as our scraper records them; return how many."""
    names, nodes, start = fields(), 16, datetime(2026, 11, 20)  # noqa: DTZ001 -- naive UTC
    labels = [
        "{" + ",".join(f'{k}="{v}"' for k, v in labels_of(gpu).items()) + "}"
        for gpu in range(8 * nodes)
    ]
    written = number = 0
    with file.open("w") as out:
        while written < lines:
            at, node = start + timedelta(seconds=INTERVAL_S * (number // nodes)), number % nodes
            out.write(f"# scraped_at {at.isoformat()}Z http://gpu-{node:04}:9400/metrics\n")
            for name in names:
                out.write(f"# HELP {name} Help text of a field.\n# TYPE {name} gauge\n")
                out.writelines(
                    f"{name}{labels[gpu]} {value(name, 31 * number + gpu)}\n"
                    for gpu in range(8 * node, 8 * node + 8)
                )
            written += 1 + len(names) * 10
            number += 1
    return written


def write_answer(file, points):
    """Write an answer to a range query of about so many points; return how many."""
    names = fields()[:10]
    gpus = max(1, round(points / (len(names) * POINTS_PER_SERIES)))
    with file.open("w") as out:
        out.write('{"status":"success","data":{"resultType":"matrix","result":[')
        for number in range(gpus * len(names)):
            gpu, name = number // len(names), names[number % len(names)]
            metric = json.dumps({"__name__": name, **labels_of(gpu)}, separators=(",", ":"))
            values = ",".join(
                f'[{START_S + INTERVAL_S * i:.3f},"{value(name, i * 31 + gpu)}"]'
                for i in range(POINTS_PER_SERIES)
            )
            out.write(f'{"," if number else ""}{{"metric":{metric},"values":[{values}]}}')
        out.write("]}}")
    return gpus * len(names) * POINTS_PER_SERIES


def in_duckdb(select, files, path, folder):
    """Load files into a table by one of DuckDB's readers."""
    with contextlib.closing(duckdb.connect(folder / "theirs.duckdb")) as connection:
        read = [str(path / files if files else path)]
        connection.execute(f"create table records as select * from {select}", read)


def polars_ndjson(logs, folder):
    """Read each file at once, types guessed, and write the flat fields as Parquet."""
    for file in sorted(logs.iterdir()):
        flat = pl.read_ndjson(file).unnest("header", "metadata", "coll_perf")
        flat.write_parquet(folder / f"{file.name}.parquet")


def polars_points(file, _):
    """Let Polars read the JSON and lay it out as points."""
    series = pl.read_json(file).select(pl.col("data").struct.field("result")).explode("result")
    series.unnest("result").explode("values").with_columns(
        pl.col("values").list.get(0).cast(pl.Float64).alias("ts"),
        pl.col("values").list.get(1).cast(pl.Float64).alias("value"),
    )


def polars_sink(folder, out):
    """Stream all files into one."""
    pl.scan_parquet(folder / "*.parquet").sink_parquet(out / "samples.parquet")


def prometheus_client(file, _):
    """Parse into Python objects."""
    from prometheus_client.parser import text_string_to_metric_families  # noqa: PLC0415

    for family in text_string_to_metric_families(file.read_text()):
        for _ in family.samples:
            pass


def regular_expression(file, _):
    """Take lines apart with Python's re, labels left as text."""
    for line in file.read_text().splitlines():
        if match := SAMPLE.fullmatch(line):
            float(match[3])


READ_CSV = f"read_csv($1, delim = '{SEPARATOR}', header = true)"
READ_JSON = "read_json($1, format = 'newline_delimited')"
GENERATED = (
    Format(
        name="sacct text", source="slurm", unit="k rows", per_unit=1e3, budget_per_s=300e3,
        full=1_000_000, is_a_row_each=True, write=write_sacct,
        others={"DuckDB read_csv (texts)": partial(in_duckdb, READ_CSV, "")}),
    *(
        Format(
            name=f"Inspector logs, {'verbose' if is_verbose else 'plain'}", unit="MB", per_unit=1e6,
            source="nccl-inspector", budget_per_s=150e6, full=300_000_000,
            write=partial(write_inspector, is_verbose=is_verbose),
            others={
                "Polars read_ndjson (flat)": polars_ndjson,
                "DuckDB read_json (structs)": partial(in_duckdb, READ_JSON, "*.log")})
        for is_verbose in (False, True)),
    Format(
        name="Prometheus text", source="dcgm", unit="M lines", per_unit=1e6, budget_per_s=2e6,
        full=2_000_000, options=BENCH, write=write_scrapes,
        others_max=200_000,  # they need the same time for each line
        others={
            "prometheus_client (parse)": prometheus_client,
            "re (parse, labels as text)": regular_expression}),
    Format(
        name="range-query JSON", source="prometheus", unit="M points", per_unit=1e6,
        budget_per_s=1.5e6, full=3_000_000, options=BENCH, write=write_answer,
        others={"Polars read_json (points)": polars_points}),
)  # fmt: skip
WIDE = Format(
    name="wide Parquet of the fleet", source="telemetry-parquet", unit="M rows", per_unit=1e6,
    budget_per_s=1.5e6, full=1_000_000, is_a_row_each=True,
    others={
        "Polars sink_parquet (columns)": polars_sink,
        "DuckDB read_parquet (columns)": partial(in_duckdb, "read_parquet($1)", "*.parquet"),
    },
)  # fmt: skip
