"""Whatever happened to a dump, an answer or a trace on its way: rows, rejects or one sentence."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.registry import SOURCES
from goodput_queries.errors import IngestError
from goodput_queries.storage.store import LocalStore

GOLDEN = Path(__file__).parents[2] / "golden"
FOLDERS = ("flight_recorder", "nccl_ras", "nccl_debug", "nccl_tests", "kineto")
CASES = [
    *(
        next(case.glob("input.*"))
        for folder in FOLDERS
        for case in sorted((GOLDEN / folder).iterdir())
    ),
    GOLDEN / "nccl_inspector" / "prometheus_mode_of_two_gpus" / "input.txt",
]
HOSTILE = [
    b"\x00",
    b"\xff",
    b'"',
    b"}",
    b"[" * 3000,
    b"9" * 400,
    b"-1",
    b"1e999",
    b"NaN",
    b"\n{",
    b"\x80\x02c",
]


@pytest.fixture(scope="module")
def store() -> LocalStore:
    return LocalStore()


@pytest.mark.parametrize(
    "case", CASES, ids=lambda case: f"{case.parent.parent.name}-{case.parent.name}"
)
@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_a_damaged_file_breaks_nothing(
    store: LocalStore, tmp_path: Path, case: Path, data: st.DataObject
) -> None:
    content = case.read_bytes()
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content)))
        until = min(len(content), at + data.draw(st.sampled_from([0, 1, 4, 100])))
        content = content[:at] + data.draw(st.sampled_from([b"", *HOSTILE])) + content[until:]
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content)))]
    path = tmp_path / case.name
    path.write_bytes(content)

    name = case.parent.parent.name.replace("_", "-")
    with contextlib.suppress(IngestError):
        for batch in SOURCES[name](path, ReadOptions("c")).extract():
            store.load(batch)
