"""Threads that read a machine's GPUs: their rhythm, losses, cuts, hanging calls."""

import threading

from tests.ingest import fake_nvml
from tests.ingest.fake_nvml import FakeGpu, FakeInstance, FakeNvml
from tests.ingest.nvml_sampling import (
    PATIENCE_S,
    WALL_S,
    Lines,
    Times,
    kind,
    sampling,
    steps,
    watching,
)
from tests.tables import each

from goodput_ingest.sources.nvml.watch import SILENT_MAX, Clock


def test_counters_are_read_in_a_rhythm_of_their_own():
    watch, lines, times = watching(FakeGpu())

    steps(watch, times, 21)

    assert (len(lines.of("fast")), len(lines.of("slow"))) == (21, 3)


def test_a_wall_clock_that_is_set_changes_neither_rhythm_nor_window():
    watch, lines, times = watching(FakeGpu())
    steps(watch, times, 2)
    times.wall_s -= 3_600

    steps(watch, times, 1)

    last = lines.of("fast")[-1]
    assert (last["t"], last["gpm_window_ms"]) == (WALL_S - 3_598, 1000.0)
    assert len(lines.of("slow")) == 1


@each(
    (fake_nvml.GPU_IS_LOST, "lost", 1), (fake_nvml.RESET_REQUIRED, "reset", 1),
    (fake_nvml.UNKNOWN, "silent", SILENT_MAX)
)  # fmt: skip
def test_a_gpu_that_is_gone_or_silent_is_reported_once_and_no_longer_read(code, event, tries):
    fake = FakeGpu()
    watch, lines, times = watching(fake)
    fake.error = code

    steps(watch, times, tries - 1)
    before = watch.has_ended
    steps(watch, times, 1)

    assert (before, watch.has_ended) == (False, True)
    assert [(line["gpu"], line["event"]) for line in lines.of("event")] == [(0, event)]
    assert lines.of("fast") == []


def test_a_reading_that_came_back_after_the_stop_is_not_reported():
    """A call may hang until NVML was reopened and the index means another GPU."""
    watch, lines, _ = watching(FakeGpu())
    watch._stop.set()

    watch.step()

    assert lines.all == []


def test_all_gpus_are_read_and_the_meta_line_comes_first():
    lines = Lines()
    with sampling(FakeNvml(FakeGpu(), FakeGpu(uuid="GPU-b")), lines) as sampler:
        lines.until(kind("fast", 0), 3)
        lines.until(kind("fast", 1), 3)
        lines.until(kind("host"))

    assert lines.all[0]["kind"] == "meta"
    assert [gpu["uuid"] for gpu in lines.all[0]["gpus"]] == ["GPU-a", "GPU-b"]
    assert (lines.all[0]["host"], sampler.problems()) == ("node7", [])


def test_when_one_gpu_is_lost_the_others_go_on_and_it_is_read_again_once_it_is_back():
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


def test_a_driver_that_is_reloaded_is_reopened():
    lines, gpu = Lines(), FakeGpu()
    module = FakeNvml(gpu)
    with sampling(module, lines):
        lines.until(kind("fast"))
        module.gpus = [FakeGpu(uuid="GPU-after")]
        gpu.error = fake_nvml.DRIVER_NOT_LOADED
        lines.until(lambda line: "GPU-after" in str(line.get("gpus")))
        lines.until(kind("fast"), len(lines.of("fast")) + 1)

    assert (module.opened, module.closed) == (2, 2)


def test_while_the_driver_is_away_it_is_asked_again_and_that_is_reported():
    lines, module = Lines(), FakeNvml(FakeGpu(), init_error=fake_nvml.DRIVER_NOT_LOADED)
    with sampling(module, lines) as sampler:
        sampler.settled.wait(PATIENCE_S)
        problems = sampler.problems()
        module.init_error = 0
        lines.until(kind("fast"))

    assert problems == ["NVML cannot be used: NVML Error with code 9"]


def test_a_gpu_that_is_repartitioned_is_reported_in_a_new_meta_line():
    lines, gpu = Lines(), FakeGpu(mig=1, instances=[FakeInstance(gi=1)])
    with sampling(FakeNvml(gpu), lines):
        lines.until(lambda line: line.get("gi") == 1)
        gpu.instances = [FakeInstance(gi=2)]
        lines.until(lambda line: line.get("gi") == 2)

    assert [meta["gpus"][0]["instances"][0]["gi"] for meta in lines.of("meta")] == [1, 2]


def test_a_call_that_hangs_holds_up_no_other_gpu_and_is_reported():
    lines, released = Lines(), threading.Event()
    module = FakeNvml(FakeGpu(), FakeGpu(uuid="GPU-b"))
    quick = module.nvmlDeviceGetUtilizationRates

    def hang(handle):
        if handle.uuid == "GPU-b":
            released.wait(PATIENCE_S)
        return quick(handle)

    module.nvmlDeviceGetUtilizationRates = hang
    real, later = Clock(), Times()
    clock = Clock(real.wall_s, lambda: real.steady_s() + later.steady_s)
    with sampling(module, lines, clock=clock) as sampler:
        lines.until(kind("fast", 0), 3)
        later.pass_s(100)
        problems = sampler.problems()
        released.set()

    assert "GPU 1: NVML has not answered for 10" in " ".join(problems)


def test_a_fault_of_ours_ends_a_reading_with_its_reason():
    lines = Lines()
    module = FakeNvml(FakeGpu())
    module.nvmlDeviceGetUtilizationRates = lambda _handle: None  # no rates in it
    with sampling(module, lines, retry_s=1_000.0) as sampler:
        lines.until(kind("host"), 2)

        assert "reading failed: AttributeError" in " ".join(sampler.problems())
