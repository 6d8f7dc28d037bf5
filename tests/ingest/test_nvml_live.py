# ruff: noqa: D102, DTZ001 -- tests name what they do; moments are stored naive, in UTC
"""NVML live: threads that read, a bounded buffer, the rows of the recorded source; a recorder."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
from collections import defaultdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.ingest import fake_nvml
from tests.ingest.fake_nvml import FakeGpu, FakeInstance, FakeNvml

from goodput_ingest.load import ingest
from goodput_ingest.nvml.buffer import Buffer
from goodput_ingest.nvml.gpu import Gpu
from goodput_ingest.nvml.library import Nvml
from goodput_ingest.nvml.live import NvmlLive
from goodput_ingest.nvml.recorder import Recorder, as_json
from goodput_ingest.nvml.sampler import Sampler
from goodput_ingest.nvml.watch import SILENT_MAX, Clock, Rhythm, Watch
from goodput_ingest.source import LiveSource, ReadOptions
from goodput_queries.errors import IngestError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from goodput_queries.store import LocalStore

NOW = datetime(2026, 11, 20, 12)
WALL_S = 1795177770.0
PATIENCE_S = 20.0  # far more than any wait here takes
QUICK = Rhythm(0.1, 0.1)
Line = dict[str, Any]


class Lines:
    """A sink that can be waited on until a line of some shape came."""

    def __init__(self) -> None:
        self.all: list[Line] = []
        self._came = threading.Condition()

    def add(self, line: Line) -> None:
        with self._came:
            self.all.append(line)
            self._came.notify_all()

    def until(self, is_wanted: Callable[[Line], bool], count: int = 1) -> list[Line]:
        def found() -> list[Line]:
            return [line for line in self.all if is_wanted(line)]

        with self._came:
            assert self._came.wait_for(lambda: len(found()) >= count, PATIENCE_S), self.all[-5:]
            return found()

    def of(self, kind: str) -> list[Line]:
        return [line for line in self.all if line["kind"] == kind]


def kind(name: str, gpu: int | None = None) -> Callable[[Line], bool]:
    return lambda line: line["kind"] == name and gpu in (None, line.get("gpu"))


@contextlib.contextmanager
def sampling(module: FakeNvml, lines: Lines, **options: Any) -> Iterator[Sampler]:
    sampler = Sampler(Nvml(module), lines.add, "node7", QUICK, **{"retry_s": 0.1, **options})
    sampler.start()
    try:
        yield sampler
    finally:
        sampler.stop()


class Times:
    """Two clocks that tests move."""

    def __init__(self) -> None:
        self.wall_s, self.steady_s = WALL_S, 100.0
        self.clock = Clock(lambda: self.wall_s, lambda: self.steady_s)

    def pass_s(self, seconds: float) -> None:
        self.wall_s += seconds
        self.steady_s += seconds


def watching(gpu: FakeGpu, times: Times) -> tuple[Watch, Lines]:
    lines = Lines()
    stop, attention = threading.Event(), threading.Event()
    watch = Watch(
        Gpu(Nvml(FakeNvml(gpu)), 0),
        lines.add,
        stop,
        attention,
        rhythm=Rhythm(1.0, 10.0),
        clock=times.clock,
    )
    return watch, lines


def steps(watch: Watch, times: Times, count: int) -> None:
    for _ in range(count):
        watch.step()
        times.pass_s(1.0)


def test_counters_are_read_in_a_rhythm_of_their_own() -> None:
    times = Times()
    watch, lines = watching(FakeGpu(), times)

    steps(watch, times, 21)

    assert (len(lines.of("fast")), len(lines.of("slow"))) == (21, 3)


def test_a_wall_clock_that_is_set_changes_neither_rhythm_nor_window() -> None:
    times = Times()
    watch, lines = watching(FakeGpu(), times)
    steps(watch, times, 2)
    times.wall_s -= 3_600

    steps(watch, times, 1)

    last = lines.of("fast")[-1]
    assert (last["t"], last["gpm_window_ms"]) == (WALL_S - 3_598, 1000.0)
    assert len(lines.of("slow")) == 1


@pytest.mark.parametrize(
    ("code", "event"), [(fake_nvml.GPU_IS_LOST, "lost"), (fake_nvml.RESET_REQUIRED, "reset")]
)
def test_a_gpu_that_is_gone_is_told_once_and_no_longer_read(code: int, event: str) -> None:
    times, fake = Times(), FakeGpu()
    watch, lines = watching(fake, times)
    steps(watch, times, 1)
    fake.error = code

    watch.step()

    assert watch.has_ended
    (told,) = lines.of("event")
    assert (told["gpu"], told["event"]) == (0, event)


def test_a_gpu_that_answers_nothing_for_long_is_told() -> None:
    times, fake = Times(), FakeGpu()
    watch, lines = watching(fake, times)
    fake.error = fake_nvml.UNKNOWN

    steps(watch, times, SILENT_MAX - 1)
    before = watch.has_ended
    steps(watch, times, 1)

    assert (before, watch.has_ended) == (False, True)
    assert [line["event"] for line in lines.of("event")] == ["silent"]
    assert lines.of("fast") == []


def test_a_reading_that_came_back_after_the_stop_is_not_told() -> None:
    """A call may hang until NVML was opened anew and the index means another GPU."""
    times = Times()
    watch, lines = watching(FakeGpu(), times)
    watch._stop.set()

    watch.step()

    assert lines.all == []


def test_all_gpus_are_read_and_the_meta_line_comes_first() -> None:
    lines = Lines()
    with sampling(FakeNvml(FakeGpu(), FakeGpu(uuid="GPU-b")), lines) as sampler:
        lines.until(kind("fast", 0), 3)
        lines.until(kind("fast", 1), 3)
        lines.until(kind("host"))

    assert lines.all[0]["kind"] == "meta"
    assert [gpu["uuid"] for gpu in lines.all[0]["gpus"]] == ["GPU-a", "GPU-b"]
    assert (lines.all[0]["host"], sampler.problems()) == ("node7", [])


def test_when_one_gpu_is_lost_the_others_go_on_and_it_is_read_again_once_it_is_back() -> None:
    lines, lost = Lines(), FakeGpu(uuid="GPU-b")
    with sampling(FakeNvml(FakeGpu(), lost), lines) as sampler:
        lines.until(kind("fast", 1))
        lost.error = fake_nvml.GPU_IS_LOST
        lines.until(kind("event", 1))
        others = len([line for line in lines.of("fast") if line["gpu"] == 0])
        lines.until(kind("fast", 0), others + 3)
        is_reading = sampler.is_reading()
        lost.error = 0
        lines.until(kind("meta"), 2)
        lines.until(kind("fast", 1), len([x for x in lines.of("fast") if x["gpu"] == 1]) + 1)

        assert (is_reading, sampler.problems()) == (True, [])
    assert len(lines.of("event")) == 1


def test_a_driver_that_is_loaded_anew_is_opened_anew() -> None:
    lines, gpu = Lines(), FakeGpu()
    module = FakeNvml(gpu)
    with sampling(module, lines):
        lines.until(kind("fast"))
        module.gpus = [FakeGpu(uuid="GPU-after")]
        gpu.error = fake_nvml.DRIVER_NOT_LOADED
        lines.until(lambda line: "GPU-after" in str(line.get("gpus")))
        lines.until(kind("fast"), len(lines.of("fast")) + 1)

    assert (module.opened, module.closed) == (2, 2)


def test_while_the_driver_is_away_it_is_asked_again_and_said_so() -> None:
    lines, module = Lines(), FakeNvml(FakeGpu(), init_error=fake_nvml.DRIVER_NOT_LOADED)
    with sampling(module, lines) as sampler:
        sampler.settled.wait(PATIENCE_S)
        problems = sampler.problems()
        module.init_error = 0
        lines.until(kind("fast"))

    assert problems == ["NVML cannot be used: NVML Error with code 9"]


def test_a_gpu_that_is_cut_anew_is_told_in_a_new_meta_line() -> None:
    lines, gpu = Lines(), FakeGpu(mig=1, instances=[FakeInstance(gi=1)])
    with sampling(FakeNvml(gpu), lines):
        lines.until(lambda line: line.get("gi") == 1)
        gpu.instances = [FakeInstance(gi=2)]
        lines.until(lambda line: line.get("gi") == 2)

    assert [meta["gpus"][0]["instances"][0]["gi"] for meta in lines.of("meta")] == [1, 2]


def test_a_call_that_hangs_holds_up_no_other_gpu_and_is_told() -> None:
    lines, released = Lines(), threading.Event()
    module = FakeNvml(FakeGpu(), FakeGpu(uuid="GPU-b"))
    quick = module.nvmlDeviceGetUtilizationRates

    def hang(handle: Any) -> Any:
        if handle.uuid == "GPU-b":
            released.wait(PATIENCE_S)
        return quick(handle)

    module.nvmlDeviceGetUtilizationRates = hang
    times = Times()
    real = Clock()
    clock = Clock(real.wall_s, lambda: real.steady_s() + times.wall_s - WALL_S)
    with sampling(module, lines, clock=clock) as sampler:
        lines.until(kind("fast", 0), 3)
        times.wall_s += 100  # a hundred seconds later
        problems = sampler.problems()
        released.set()

    assert "GPU 1: NVML has not answered for 10" in " ".join(problems)


def test_a_fault_of_ours_ends_a_reading_with_its_reason() -> None:
    lines = Lines()
    module = FakeNvml(FakeGpu())
    module.nvmlDeviceGetUtilizationRates = lambda _handle: None  # no rates in it
    with sampling(module, lines, retry_s=1_000.0) as sampler:
        lines.until(kind("host"), 2)

        assert "reading failed: AttributeError" in " ".join(sampler.problems())


def load(store: LocalStore, source: NvmlLive) -> dict[str, int]:
    new: dict[str, int] = defaultdict(int)
    for batch in source.poll({}, NOW):
        new[batch.table] += store.load(batch).rows_new
    return new


@pytest.fixture
def live() -> Iterator[Callable[..., NvmlLive]]:
    with contextlib.ExitStack() as stack:

        def start(module: FakeNvml, **settings: Any) -> NvmlLive:
            settings = {"cluster": "lab", "node": "node7", **settings}
            source = NvmlLive(module=module, sample_s=0.2, slow_s=0.2, **settings)
            stack.callback(source.close)
            return source

        yield start


def poll_until(store: LocalStore, source: NvmlLive, query: str, wanted: int) -> None:
    waiter = threading.Event()
    for _ in range(int(PATIENCE_S / 0.05)):
        load(store, source)
        if store.read(query).item() >= wanted:
            return
        waiter.wait(0.05)  # readings come in their own time
    raise AssertionError(query)


def test_what_is_read_live_lands_as_recorded_readings_do(
    store: LocalStore, live: Callable[..., NvmlLive]
) -> None:
    source = live(FakeNvml(FakeGpu(xids=[(79, 0xFFFFFFFF)], processes=[(7, None)])))

    poll_until(store, source, "select count(sm_active_ratio) from raw.gpu_samples", 2)

    sample = store.read("from raw.gpu_samples where sm_active_ratio is not null limit 1").row(
        0, named=True
    )
    assert (sample["source"], sample["gpu_uuid"], sample["gpu_instance"]) == ("nvml", "GPU-a", "")
    assert (sample["power_w"], sample["sm_active_ratio"], sample["is_flagged"]) == (
        690.5,
        0.1,
        False,
    )
    gpu = store.read("select cluster, node, slurm_index, driver_version from raw.gpus").row(0)
    assert gpu == ("lab", "node7", 4, "580.159.04")
    assert store.read("select distinct processes, pids from raw.gpu_processes").rows() == [(1, [7])]
    event = store.read("select node, pci_bus_id, ts_precision, kind, code from raw.gpu_events")
    assert event.rows() == [("node7", "00000000:9b:00.0", "at_or_before", "xid", 79)]
    assert store.read("select count(*) from raw.rejects").item() == 0


def test_the_live_source_is_one() -> None:
    assert isinstance(NvmlLive(), LiveSource)
    assert NvmlLive().sample_s == 1.0


def test_lines_that_were_not_loaded_come_again(live: Callable[..., NvmlLive]) -> None:
    source = live(FakeNvml(FakeGpu()))
    session = source._session()
    session.sampler.settled.wait(PATIENCE_S)
    first = source.poll({}, NOW)
    batch = next(first)
    first.close()  # the store refused the batch

    tables = {again.table for again in source.poll({}, NOW)}

    assert batch.table in tables


def test_without_a_driver_a_poll_says_what_to_do(live: Callable[..., NvmlLive]) -> None:
    source = live(FakeNvml(init_error=fake_nvml.LIBRARY_NOT_FOUND))

    with pytest.raises(IngestError, match=r"NVML cannot be used.*driver.*goodput ingest nvml"):
        list(source.poll({}, NOW))


def test_the_installed_package_without_a_driver_says_so() -> None:
    pynvml = pytest.importorskip("pynvml")
    with contextlib.suppress(pynvml.NVMLError):
        pynvml.nvmlInit()
        pynvml.nvmlShutdown()
        pytest.skip("this machine has NVIDIA's driver")

    with pytest.raises(IngestError, match="NVML cannot be used"):
        NvmlLive().probe()


def test_a_machine_without_a_gpu_says_so(live: Callable[..., NvmlLive]) -> None:
    with pytest.raises(IngestError, match="knows of no GPU"):
        list(live(FakeNvml()).poll({}, NOW))


def test_when_all_gpus_are_gone_a_poll_fails_after_what_was_read(
    store: LocalStore, live: Callable[..., NvmlLive]
) -> None:
    gpu = FakeGpu()
    source = live(FakeNvml(gpu))
    poll_until(store, source, "select count(*) from raw.gpu_samples", 1)
    gpu.error = fake_nvml.GPU_IS_LOST

    with pytest.raises(IngestError, match="GPU 0: GPU is lost"):
        poll_until(store, source, "select 0", 1)

    kinds = store.read("select kind, code, message from raw.gpu_events").rows()
    assert kinds == [("off_the_bus", 79, "NVML: GPU is lost")]


@pytest.mark.parametrize(("sample_s", "slow_s"), [(0.1, 1.0), (5.0, 1.0), (float("nan"), 1.0)])
def test_rhythms_that_cannot_work_are_refused(sample_s: float, slow_s: float) -> None:
    with pytest.raises(IngestError, match="sample_s"):
        NvmlLive(sample_s=sample_s, slow_s=slow_s)


def test_a_probe_says_what_there_is_and_what_is_not_given() -> None:
    gpus = (
        FakeGpu(errors={82: 3}),
        FakeGpu(uuid="GPU-b", gpm=False),
        FakeGpu(uuid="GPU-c", error=fake_nvml.GPU_IS_LOST),
    )
    module = FakeNvml(*gpus)

    found = NvmlLive(module=module).probe()

    assert found[:4] == [
        "driver 580.159.04, 3 GPU(s)",
        "GPU 0: NVIDIA H200, GPU-a",
        "GPU 1: NVIDIA H200, GPU-b",
        "GPU 2 cannot be read: GPU is lost",
    ]
    assert "not given by GPU 0: mem_temp_c: not supported" in found
    assert "not given by GPU 1: gpm: not supported" in found
    assert (module.opened, module.samples_held) == (module.closed, 0)


def test_a_full_buffer_drops_the_oldest_and_keeps_what_indices_mean() -> None:
    buffer = Buffer(100)
    buffer.add(as_json({"kind": "meta", "t": 1}))
    for number in range(50):
        buffer.add(b"%05d" % number)

    taken = buffer.take(1_000)

    assert taken.lines[0].startswith(b'{"kind":"meta"')
    assert (len(taken.lines), taken.lines[-1], taken.dropped) == (1 + 20, b"00049", 31)


def test_lines_that_came_while_others_were_loaded_stay() -> None:
    buffer = Buffer(1_000)
    buffer.add(b"a")
    taken = buffer.take(10)
    buffer.add(b"b")

    buffer.forget(taken)

    assert buffer.take(10).lines == [b"b"]


def test_lines_dropped_while_others_were_loaded_do_not_take_newer_ones_along() -> None:
    buffer = Buffer(3)
    for line in (b"a", b"b", b"c"):
        buffer.add(line)
    taken = buffer.take(2)
    buffer.add(b"d")  # drops a

    buffer.forget(taken)

    assert buffer.take(10).lines == [b"c", b"d"]


def test_dropped_lines_are_told(
    store: LocalStore, live: Callable[..., NvmlLive], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goodput_ingest.nvml.live.BUFFER_BYTES", 2_000)
    lines = Lines()
    source = live(FakeNvml(FakeGpu()))
    session = source._session()
    add = session.buffer.add
    session.buffer.add = lambda line: (add(line), lines.add(json.loads(line)))[0]  # type: ignore[method-assign]
    lines.until(kind("fast"), 5)

    load(store, source)

    reasons = store.read("select reason from raw.rejects").to_series().to_list()
    assert any("lines were dropped unread" in reason for reason in reasons)
    assert store.read("select count(*) from raw.gpu_samples").item() > 0


def test_a_recording_of_ours_is_recognised_and_read(store: LocalStore, tmp_path: Path) -> None:
    for name in ("gpus.jsonl", "gpus.jsonl.gz"):
        recorder, lines = Recorder(tmp_path / name), Lines()

        def both(line: Line, recorder: Recorder = recorder, lines: Lines = lines) -> None:
            recorder.add(line)
            lines.add(line)

        sampler = Sampler(Nvml(FakeNvml(FakeGpu(uuid=name))), both, "node7", QUICK)
        sampler.start()
        lines.until(kind("fast"), 3)
        sampler.stop()
        recorder.close()

        summary = ingest(store, "auto", [tmp_path / name], ReadOptions())

        assert (summary.rejects, summary.unrecognised) == (0, [])
        assert summary.rows_by_table["gpu_samples"] >= 3
        assert summary.rows_by_table["gpus"] == 1


def test_a_recorder_goes_on_after_one_that_was_killed_inside_a_line(tmp_path: Path) -> None:
    path = tmp_path / "gpus.jsonl"
    path.write_bytes(b'{"kind":"meta"}\n{"kind":"fa')

    recorder = Recorder(path)
    recorder.add({"kind": "clock"})
    recorder.close()

    kept = path.read_bytes().splitlines()
    assert kept[:3] == [b'{"kind":"meta"}', b'{"kind":"fa', b'{"kind":"clock"}']


def test_a_compressed_recording_is_never_written_over(tmp_path: Path) -> None:
    path = tmp_path / "gpus.jsonl.gz"
    path.touch()

    with pytest.raises(FileExistsError):
        Recorder(path)


def test_a_recorder_stops_where_the_disk_is_full() -> None:
    recorder = Recorder(Path("/dev/full"))
    for _ in range(10_000):
        recorder.add({"kind": "fast", "t": 1.0})

    recorder.wait(threading.Event(), None)
    recorder.close()

    assert recorder.problem == "No space left on device"


def test_the_recorder_says_where_there_is_no_driver(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "goodput_ingest.nvml", "--out", str(tmp_path / "x.jsonl")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    if done.returncode == 0:
        pytest.skip("this machine has NVIDIA's driver")
    assert done.stderr.startswith("nvml: NVML cannot be used")
    assert done.returncode == 1
