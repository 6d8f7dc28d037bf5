"""A file that breaks its reader costs itself: a sentence, no traceback, and the others are read."""

import contextlib
import io
import itertools
import json
import re
from datetime import datetime
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from polars.exceptions import PanicException
from tests.ingest.golden_cases import CASES, golden_path, input_of, name_of
from tests.tables import each

from goodput_ingest.formats import parquet_columns
from goodput_ingest.formats.json_text import json_lines
from goodput_ingest.formats.json_text.json_lines import FieldError
from goodput_ingest.run import ingest as load
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.bundle import FORMAT_KEY, TABLE_KEY
from goodput_ingest.sources.registry import sources
from goodput_queries.errors import IngestError

EVENTS = golden_path("job_events/killed_rank_and_restart/input.jsonl").read_bytes()
XID = "NVRM: Xid (PCI:0000:9b:00): 79, pid=1, GPU has fallen off the bus."
START = datetime(2025, 8, 20)  # noqa: DTZ001 -- UTC
TIME = re.compile(rb"\d{4}-\d\d-\d\d(?=[T ]\d\d:)")


def ingest(store, path, source="auto", zone="Europe/Berlin"):
    options = ReadOptions("c", ZoneInfo(zone), datetime(2025, 8, 20, 15), "n1")  # noqa: DTZ001
    return load.ingest(store, source, [path], options)


def parquet(ts):
    rows = pl.DataFrame({"ts": ts, "gpu_uuid": "GPU-1", "power_w": 1.0, "my_own": 1.0})
    stream = io.BytesIO()
    rows.write_parquet(stream)
    return stream.getvalue()


def nccl_table(wrong, time="121.3"):
    return (
        "# nThread 1 nGpus 1 minBytes 8 maxBytes 8\n"
        f"  8388608  2097152  float  sum  -1  {time}  69.16  69.16  {wrong}"
        "  120.9  69.38  69.38  0\n"
    ).encode()


def nccl_json(**fields):
    half = {"time": 1.0, "alg_bw": 1.0, "bus_bw": 1.0, "nwrong": 0}
    result = {"size": 8, "count": 2, "type": "float", "out_of_place": half, "in_place": half}
    return json.dumps({"results": [result], **fields}).encode()


def kernel_line(when):
    return f"{when} n1 kernel: {XID}\n".encode()


def of_year(year, golden):
    return TIME.sub(f"{year}-01-01".encode(), golden_path(golden).read_bytes())


EXTREME = {
    "no_labels.prom": b"nvidia_smi_failed_scrapes_total 1\n",
    "infinite.txt": nccl_table("1e999"),
    "huge_whole_number.txt": nccl_table("1" + "0" * 25),
    "beyond_64_bits.txt": nccl_table("1e300"),
    "infinite_time.txt": nccl_table("0", time="1e999"),
    "year_1.json": nccl_json(start_time="0001-01-01T00:00:00"),
    "year_9999.json": nccl_json(start_time="9999-12-31T23:59:59-10:00"),
    "year_1_local.log": b"[Mon Jan  1 00:00:00 0001] " + XID.encode() + b"\n",
    "year_9999.log": kernel_line("9999-12-31T23:59:59-10:00"),
    "year_1.log": kernel_line("0001-01-01T00:00:00+10:00"),
    "otel-spans.jsonl": of_year("9999", "otel_spans/sdk_and_otlp_lines/input.jsonl"),
    "sacct_1.txt": of_year("0001", "slurm/24_11_sacct_steps_and_duplicates/input.txt"),
    "log_1.log": of_year("0001", "job_log/megatron_two_lives_and_a_hang/input.log"),
    "log_9999.log": of_year("9999", "job_log/megatron_two_lives_and_a_hang/input.log"),
    "year_1.parquet": parquet(datetime(1, 1, 1)),  # noqa: DTZ001
    "beyond_calendars.parquet": parquet(pl.Series([2**63 - 1]).cast(pl.Datetime("us"))),
    "before_year_1.parquet": parquet(pl.Series([-(2**62)]).cast(pl.Datetime("us"))),
}


@pytest.mark.parametrize("name", EXTREME)
@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Pacific/Auckland"])
def test_extreme_values_are_rows_or_rejects(store, tmp_path, name, zone):
    path = tmp_path / name
    path.write_bytes(EXTREME[name])

    summary = ingest(store, path, zone=zone)

    assert summary.failed == []
    assert summary.unrecognised == []
    assert summary.rows + summary.rejects + len(summary.refused) > 0


def test_a_wrong_byte_of_a_parquet_file_ends_no_process(tmp_path):
    whole, path = parquet([START] * 3), tmp_path / "file.parquet"
    for at, bits in itertools.product(range(2, len(whole), 5), (1, 129)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ bits]) + whole[at + 1 :])
        parquet_columns.names(path, whole)
        with contextlib.suppress(IngestError):
            _, rows = parquet_columns.described(path)
            assert sum(part.height for part in parquet_columns.parts(path, rows)) <= sum(rows)


def test_a_small_parquet_file_that_unpacks_to_a_huge_one_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_columns, "ALWAYS_BYTES", 1_000_000)
    rows = pl.read_parquet(io.BytesIO(parquet([START] * 100))).with_columns(source=pl.lit("x"))
    path, metadata = tmp_path / "file.parquet", {FORMAT_KEY: "1", TABLE_KEY: "gpu_samples"}
    pl.concat([rows] * 1_000).write_parquet(path, metadata=metadata)

    for name in ("telemetry-parquet", "bundle"):
        with pytest.raises(IngestError, match=r"unpacks to 100,000 rows of .* over 200 times"):
            list(sources()[name](path, ReadOptions("c", ZoneInfo("UTC"))).extract())


BYTES = (b"", b"\n\n", b"\x1f\x8b", b"\x1f\x8b\x08\x00", b"\xff\xfe{\x00", b"{" * 10_000)


@pytest.mark.parametrize("name", sources())
def test_bytes_of_no_format_are_read_or_refused(store, tmp_path, name):
    for content in BYTES:
        (tmp_path / "file").write_bytes(content)
        with contextlib.suppress(IngestError):
            assert ingest(store, tmp_path / "file", name).failed == []


BOMBS = (
    b'{"a":' * 100_000, b"[" * 100_000 + b"]" * 100_000,
    b'{"v":1,"ts":1,"event":"step","step":1,"x":' + b"[" * 900 + b"NaN" + b"]" * 900 + b"}",
    b'{"v":1,"ts":1,"event":"step","step":' + b"9" * 10_000 + b"}",
    b"{" + b",".join(b'"label%d":"%d"' % (i, i) for i in range(200_000)) + b"}",
    b'{"coll_perf":{"coll_sn":' + b"9" * 5_000 + b'},"kind":"fast","t":1e999}',
    b"x" * (17 * 1024 * 1024), b"NVRM: Xid (PCI:0000:9b:00" + b":" * 100_000,
    b"[Tue Nov 18 13:00:00 2025] NVRM: Xid (" * 20_000,
    b":" * 1_000_000 + b"vm:1:1 [0] NCCL INFO " + b"x" * 5_000_000,
)  # fmt: skip


@each(
    "nvml", "job-events", "nccl-inspector", "kernel-log", "torchtitan-structured",
    "goodput-events", "otel-spans", "nccl-debug",
)  # fmt: skip
def test_bombs_among_the_lines_are_rejected(store, tmp_path, name):
    files = (input_of(case) for case in CASES if name_of(case) == name)
    first = next(file for file in files if file.suffix != ".json").read_bytes().splitlines()[0]
    (tmp_path / "file").write_bytes(b"\n".join([first, *BOMBS, first]))

    summary = ingest(store, tmp_path / "file", name)

    assert (summary.files, summary.failed) == (1, [])
    assert store.read("select coalesce(max(length(content)), 0) from raw.rejects").item() <= 500


@pytest.mark.parametrize("error", [KeyError("step"), PanicException("step")], ids=type)
@pytest.mark.parametrize("source", ["auto", "job-events"])
def test_a_file_that_breaks_its_reader_costs_no_other(store, tmp_path, breaking, source, error):
    for name in ("a.jsonl", "bad.jsonl", "c.jsonl"):
        (tmp_path / name).write_bytes(EVENTS + b"# %s\n" % name.encode())
    breaking(error)

    summary = ingest(store, tmp_path, source)

    assert summary.files == 2
    (sentence,) = summary.failed
    kind = type(error).__name__
    assert sentence.startswith(f"{tmp_path / 'bad.jsonl'}: unexpected {kind} at goodput_ingest.")
    assert "step" in sentence
    assert "\n" not in sentence


@pytest.mark.parametrize("error", [MemoryError(), KeyboardInterrupt(), SystemExit(3)], ids=type)
def test_what_ends_a_process_ends_an_ingest(store, tmp_path, breaking, error):
    (tmp_path / "bad.jsonl").write_bytes(EVENTS)
    breaking(error)
    with pytest.raises(type(error)):
        ingest(store, tmp_path)


@each(
    "dcgm/names_of_1_x/input.prom", "slurm/22_05_sacct_steps_and_duplicates/input.txt",
    "job_events/killed_rank_and_restart/input.jsonl", "kernel_log/journal_of_two_nodes/input.log",
)  # fmt: skip
def test_lines_that_end_with_a_carriage_return_alone_are_lines(store, tmp_path, golden):
    (tmp_path / "file").write_bytes(golden_path(golden).read_bytes().replace(b"\n", b"\r"))

    wanted, found = ingest(store, golden_path(golden)), ingest(store, tmp_path / "file")

    assert found.rows == wanted.rows > 0
    assert found.rejects == wanted.rejects


def test_progress_bars_in_a_log_are_no_lines(store, tmp_path):
    line = golden_path("kernel_log/journal_of_two_nodes/input.log").read_bytes().splitlines()[0]
    path = tmp_path / "file.log"
    path.write_bytes(b"10%\r20%\r30%\n" + line + b"\n")
    assert ingest(store, path, "kernel-log").files == 1


def test_a_broken_line_with_half_a_character_is_rejected():
    with pytest.raises(FieldError, match="cut or not JSON"):
        json_lines.record('{"log": "\ud800')
