"""What tests of pages share: the recorded session, as it was and with faults of its hardware."""

from datetime import datetime

import pytest
import streamlit as st
from tests.app.opened_page import HOSTILE
from tests.queries.conftest import Evidence
from tests.recorded_session import CAPTURED, SAMPLE, built

from goodput_app.process.store import use_store
from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries.evidence.batch import Batch

AT = datetime(2026, 11, 20, 12, 31)  # noqa: DTZ001 -- UTC
LINK = """select 'test' as source, $1 as node, 'infiniband' as kind, '<b>mlx5_0</b>' as device,
    '1' as port, timestamp '2026-11-20 12:31:00' + interval (n) minute as ts,
    n not in (2, 3) as is_up, n * 1000 as rx_bytes, n as rx_drops,
    100.0 as speed_bytes_per_s from range(12) as minutes(n)"""
SOCKETS = """select 'test' as source, 'lab' as cluster, '0x1' as comm_id, $1 as node, 7 as pid,
    2 as nodes, 'NET/Socket' as transport"""
BENCHMARKS = """select 'test' as source, 'lab' as cluster, 'b' || n as benchmark_id,
    'AllReduce' as operation, 1073741824 as size_bytes, 'float' as dtype, 'sum' as reduction,
    -1 as root, true as is_in_place, 0 as repeat, false as is_cpu_time,
    3.6e11 - n * 6e10 as busbw_bytes_per_s, 4 as ranks, [$1] as nodes, 'NVIDIA H200' as gpu_model,
    timestamp '2026-11-18' + interval (n) day as started_at from range(2) as days(n)"""


@pytest.fixture(scope="module")
def capture(filled, module_store):
    """Give the recorded session: NVML, job events, accounting, Inspector logs of one part."""
    return module_store(copy_of=built(filled, *CAPTURED))


@pytest.fixture(scope="module")
def hit(filled, module_store):
    """Give the session with all its Inspector logs, which have a slow link, and with more faults.

    A GPU has an Xid of a hostile message, its node is down for a moment and loses a port of a
    hostile name; NCCL falls back to sockets. There are two benchmarks.
    """
    return module_store(copy_of=filled("hit", _load_faults, copy_of=built(filled, *CAPTURED)))


def _load_faults(store):
    ingest(store, "auto", [SAMPLE / "nccl_inspector"], ReadOptions(cluster="lab"))
    node, gpu = store.read("select node, gpu_uuid from marts.gpus order by gpu_index").row(0)
    session = Evidence(store, "lab")
    session.xid(node, 79, AT, "test", gpu_uuid=gpu, message=HOSTILE)
    session.state(node, "down", AT, AT, reason=HOSTILE)
    for table, sql in {
        "link_samples": LINK, "comm_transports": SOCKETS, "nccl_benchmarks": BENCHMARKS,
    }.items():  # fmt: skip
        store.load(Batch(table, store.read(sql, [node]), "test", "test", table))
    store.build()


@pytest.fixture
def used(world):
    """Let the data of pages be read from the module's world; forget them after the test."""
    use_store(world)
    yield world
    st.cache_data.clear()
