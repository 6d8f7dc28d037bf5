"""NVML live: a bounded buffer, the rows of the recorded source."""

import contextlib
import json
import threading
from collections import defaultdict

import pytest
from tests.ingest import fake_nvml
from tests.ingest.fake_nvml import FakeGpu, FakeNvml
from tests.ingest.nvml_sampling import NOW, PATIENCE_S, Lines, kind
from tests.tables import each

from goodput_ingest.sources.nvml.buffer import Buffer
from goodput_ingest.sources.nvml.live import NvmlLive
from goodput_ingest.sources.nvml.recorder import as_json
from goodput_queries.errors import IngestError


def load(store, source):
    new = defaultdict(int)
    for batch in source.poll({}, NOW):
        new[batch.table] += store.load(batch).rows_new
    return new


@pytest.fixture
def live():
    with contextlib.ExitStack() as stack:

        def start(module, **settings):
            settings = {"cluster": "lab", "node": "node7", **settings}
            source = NvmlLive(module=module, sample_s=0.2, slow_s=0.2, **settings)
            stack.callback(source.close)
            return source

        yield start


def poll_until(store, source, query, wanted):
    waiter = threading.Event()
    for _ in range(int(PATIENCE_S / 0.05)):
        load(store, source)
        if store.read(query).item() >= wanted:
            return
        waiter.wait(0.05)  # readings come in their own time
    raise AssertionError(query)


def test_what_is_read_live_lands_as_recorded_readings_do(store, live):
    source = live(FakeNvml(FakeGpu(xids=[(79, 0xFFFFFFFF)], processes=[(7, None)])))

    poll_until(store, source, "select count(sm_active_ratio) from raw.gpu_samples", 2)

    samples = store.read("from raw.gpu_samples where sm_active_ratio is not null limit 1")
    (sample,) = samples.rows(named=True)
    assert (sample["source"], sample["gpu_uuid"], sample["gpu_instance"]) == ("nvml", "GPU-a", "")
    assert (sample["power_w"], sample["sm_active_ratio"]) == (690.5, 0.1)
    assert not sample["is_flagged"]
    facts = "cluster, node, slurm_index, driver_version, vbios_version"
    gpu = store.read(f"select {facts} from raw.gpus").row(0)
    assert gpu == ("lab", "node7", 4, "580.159.04", "96.00.CF.00.01")
    assert store.read("select distinct processes, pids from raw.gpu_processes").rows() == [(1, [7])]
    event = store.read("select node, pci_bus_id, ts_precision, kind, code from raw.gpu_events")
    assert event.rows() == [("node7", "00000000:9b:00.0", "at_or_before", "xid", 79)]
    assert store.read("select count(*) from raw.rejects").item() == 0


@each(
    (fake_nvml.LIBRARY_NOT_FOUND, "NVML cannot be used.*driver.*goodput ingest nvml"),
    (0, "knows of no GPU"),
)
def test_without_a_driver_or_a_gpu_a_poll_says_so(live, init_error, said):
    with pytest.raises(IngestError, match=said):
        list(live(FakeNvml(init_error=init_error)).poll({}, NOW))


def test_when_all_gpus_are_gone_a_poll_fails_after_what_was_read(store, live):
    gpu = FakeGpu()
    source = live(FakeNvml(gpu))
    poll_until(store, source, "select count(*) from raw.gpu_samples", 1)
    gpu.error = fake_nvml.GPU_IS_LOST

    with pytest.raises(IngestError, match="GPU 0: GPU is lost"):
        poll_until(store, source, "select 0", 1)

    kinds = store.read("select kind, code, message from raw.gpu_events").rows()
    assert kinds == [("off_the_bus", 79, "NVML: GPU is lost")]


def test_a_probe_says_what_there_is_and_what_is_not_given():
    lost = FakeGpu("GPU-c", error=fake_nvml.GPU_IS_LOST)
    module = FakeNvml(FakeGpu(errors={82: 3}), FakeGpu("GPU-b", gpm=False), lost)

    found = NvmlLive(module=module).probe()

    assert found[:4] == [
        "driver 580.159.04, 3 GPU(s)", "GPU 0: NVIDIA H200, GPU-a", "GPU 1: NVIDIA H200, GPU-b",
        "GPU 2 cannot be read: GPU is lost",
    ]  # fmt: skip
    assert "not given by GPU 0: mem_temp_c: not supported" in found
    assert "not given by GPU 1: gpm: not supported" in found
    assert (module.opened, module.samples_held) == (module.closed, 0)


def test_a_full_buffer_drops_the_oldest_and_keeps_what_indices_mean():
    buffer = Buffer(100)
    buffer.add(as_json({"kind": "meta", "t": 1}))
    for number in range(50):
        buffer.add(b"%05d" % number)

    taken = buffer.take(1_000)

    assert taken.lines[0].startswith(b'{"kind":"meta"')
    assert (len(taken.lines), taken.lines[-1], taken.dropped) == (1 + 20, b"00049", 31)


@each(
    (1_000, [b"a"], 10, [b"b"]),
    (3, [b"a", b"b", b"c"], 2, [b"c", b"b"]),  # the new line drops the first
)
def test_lines_that_came_while_others_were_loaded_stay(size, lines, taken, left):
    buffer = Buffer(size)
    for line in lines:
        buffer.add(line)
    loaded = buffer.take(taken)
    buffer.add(b"b")

    buffer.forget(loaded)

    assert buffer.take(10).lines == left


def test_dropped_lines_are_reported(store, live, monkeypatch):
    monkeypatch.setattr("goodput_ingest.sources.nvml.live.BUFFER_BYTES", 2_000)
    lines = Lines()
    source = live(FakeNvml(FakeGpu()))
    session = source._session()
    add = session.buffer.add
    session.buffer.add = lambda line: (add(line), lines.add(json.loads(line)))[0]
    lines.until(kind("fast"), 5)

    load(store, source)

    reasons = store.read("select reason from raw.rejects").to_series().to_list()
    assert any("lines were dropped unread" in reason for reason in reasons)
    assert store.read("select count(*) from raw.gpu_samples").item() > 0
