"""Whatever stands in a recorded file: no crash; a line is a row or a reject with a reason."""

import contextlib
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.registry import SOURCES, recognise
from goodput_queries.errors import IngestError

GOLDEN = Path(__file__).parents[1] / "golden"
NAMES = {
    "nvml/four_gpus_with_incomplete_gpm": "nvml",
    "job_events/killed_rank_and_restart": "job-events",
    "nccl_inspector/verbose_and_plain_of_two_versions": "nccl-inspector",
    "kernel_log": "kernel-log",
    "torchtitan_structured/one_rank_restores_steps_and_fails": "torchtitan-structured",
    "goodput_events/two_lives_with_orbax": "goodput-events",
    "otel_spans/sdk_and_otlp_lines": "otel-spans",
}
REAL = {
    name: [
        line
        for file in sorted((GOLDEN / folder).rglob("input.*"))
        for line in file.read_bytes().splitlines()
    ]
    for folder, name in NAMES.items()
}
FIRST = {name: lines[0] for name, lines in REAL.items()}  # makes the file recognisable
OPTIONS = ReadOptions(
    cluster="c",
    zone=ZoneInfo("Europe/Berlin"),
    node="n",
    observed_at=datetime(2026, 8, 21),  # noqa: DTZ001 -- naive UTC
)
SIZES = settings(
    max_examples=6,  # `make fuzz` tries thousands
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(scope="module")
def kept(new_store):
    with contextlib.closing(new_store()) as opened:
        yield opened


def load(kept, name, path):
    """Read a file as a source and load it; a refusal of the whole file is an answer, too."""
    recognise(path)
    try:
        batches = list(SOURCES[name](path, OPTIONS).extract())
    except IngestError:
        return []
    for batch in batches:
        kept.load(batch)
        assert all(reject.reason for reject in batch.rejects)
    return batches


@pytest.mark.parametrize("name", SOURCES)
@given(content=st.binary(max_size=300))
@example(content=b"")
@example(content=b"\n\n")
@example(content=b"\x1f\x8b")
@example(content=b"\x1f\x8b\x08\x00")
@example(content=b"\xff\xfe{\x00")
@example(content=b"{" * 10_000)
@SIZES
def test_any_bytes_are_read_or_refused(kept, tmp_path, name, content):
    path = tmp_path / "file"
    path.write_bytes(content)

    load(kept, name, path)


BOMBS = (
    b'{"a":' * 100_000,
    b"[" * 100_000 + b"]" * 100_000,
    b'{"v":1,"ts":1,"event":"step","step":1,"x":' + b"[" * 900 + b"NaN" + b"]" * 900 + b"}",
    b'{"v":1,"ts":1,"event":"step","step":' + b"9" * 10_000 + b"}",
    b"{" + b",".join(b'"label%d":"%d"' % (i, i) for i in range(200_000)) + b"}",
    b'{"coll_perf":{"coll_sn":' + b"9" * 5_000 + b'},"kind":"fast","t":1e999}',
    b"x" * (17 * 1024 * 1024),
    b"NVRM: Xid (PCI:0000:9b:00" + b":" * 100_000,
    b"[Tue Nov 18 13:00:00 2025] NVRM: Xid (" * 20_000,
)


@pytest.mark.parametrize("name", NAMES.values())
def test_bombs_among_the_lines_are_rejected(kept, tmp_path, name):
    path = tmp_path / "file"
    path.write_bytes(b"\n".join([FIRST[name], *BOMBS, FIRST[name]]))

    batches = load(kept, name, path)

    assert batches
    assert all(len(reject.content) <= 500 for batch in batches for reject in batch.rejects)
