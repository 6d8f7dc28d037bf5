"""The machine, its processes and the installed package; and the recorder of NVML."""

import subprocess
import sys
import threading
from pathlib import Path

import pynvml
import pytest
from tests.ingest.fake_nvml import FakeGpu, FakeNvml
from tests.ingest.nvml_sampling import QUICK, Lines, kind, sampling

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.nvml import machine, readings
from goodput_ingest.sources.nvml.gpm import Gpm
from goodput_ingest.sources.nvml.library import Nvml
from goodput_ingest.sources.nvml.machine import INIT_PID_NAMESPACE
from goodput_ingest.sources.nvml.recorder import Recorder
from goodput_ingest.sources.nvml.sampler import Sampler


def test_the_machine_reports_whole_disks_only(tmp_path):
    (tmp_path / "stat").write_text("cpu  10 1 5 100 7 0 2 0 3 0\ncpu0 1 1 1 1\n")
    (tmp_path / "loadavg").write_text("0.58 0.3 0.1 1/500 77\n")
    (tmp_path / "meminfo").write_text("MemTotal:  528 kB\nCached: 20 kB\nHugePages_Total: 0\n")
    (tmp_path / "diskstats").write_text(
        "259 0 nvme0n1 1 0 100 1 1 0 10 1 0 1 1\n"
        "259 1 nvme0n1p1 1 0 90 1 1 0 9 1 0 1 1\n"
        "253 0 dm-0 1 0 90 1 1 0 9 1 0 1 1\n"
        "7 0 loop0 1 0 5 1 1 0 5 1 0 1 1\n"
    )

    found = machine.figures(tmp_path)

    assert found["cpu_jiffies"] == {
        "user": 10, "nice": 1, "system": 5, "idle": 100, "iowait": 7, "irq": 0, "softirq": 2,
        "steal": 0,
    }  # fmt: skip
    assert (found["memtotal_kb"], found["cached_kb"], found["load1"]) == (528, 20, 0.58)
    assert (found["disk_read_sectors"], found["disk_write_sectors"]) == (100, 10)
    assert (found["disk_reads"], found["disk_busy_ms"]) == (1, 1)


def test_a_machine_that_reports_nothing_has_no_figures(tmp_path):
    assert machine.figures(tmp_path) == {}


def test_the_installed_package_has_every_function_or_an_older_name_of_it():
    for reading in (*readings.FAST, *readings.SLOW, *readings.META):
        functions = [call.function for call in reading.calls]
        assert not functions or any(hasattr(pynvml, name) for name in functions), reading.names


def test_gpm_numbers_go_into_the_structure_of_the_installed_package():
    module = FakeNvml(FakeGpu())
    module.c_nvmlGpmMetricsGet_t = pynvml.c_nvmlGpmMetricsGet_t

    asked = Gpm(Nvml(module), module.gpus[0])._asked

    numbers = [metric.metricId for metric in asked.metrics[: asked.numMetrics]]
    assert numbers == list(readings.GPM.values())


def test_the_reader_needs_nothing_but_python_and_pynvml():
    """It runs on compute nodes, where the dashboard's packages are not installed."""
    without = dict.fromkeys(("polars", "duckdb", "pyarrow", "numpy", "goodput_queries"))
    code = (
        f"import sys; sys.modules |= {without}\n"
        "from goodput_ingest.sources.nvml import gpu, sampler, recorder, __main__\n"
    )

    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.fixture
def child():
    command = [sys.executable, "-c", "input()", "train.py"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as started:
        yield started
        started.kill()


@pytest.fixture
def proc_with(tmp_path):
    """Return a folder like `/proc` of a PID namespace, with the real folder of a process."""

    def made(pid, namespace=INIT_PID_NAMESPACE):
        (tmp_path / "self/ns").mkdir(parents=True)
        (tmp_path / "self/ns/pid").symlink_to(namespace)
        (tmp_path / "stat").symlink_to("/proc/stat")
        (tmp_path / str(pid)).symlink_to(Path("/proc") / str(pid))
        return tmp_path

    return made


def test_a_process_is_described_once_before_the_list_and_when_it_is_gone(child, proc_with):
    lines = Lines()
    module = FakeNvml(*(FakeGpu(name, processes=[(child.pid, 1)]) for name in ("GPU-a", "GPU-b")))
    with sampling(module, lines, proc=proc_with(child.pid)):
        lines.until(kind("slow"), 4)
        before = lines.of("process")
        child.kill()
        child.wait()
        lines.until(lambda line: "gone" in line)

    kinds = [line["kind"] for line in lines.all]
    assert kinds.index("process") < kinds.index("slow")
    first, last = lines.of("process")
    assert before == [first]
    assert {**last, "t": first["t"], "gone": None} == {**first, "gone": None}
    assert first["start"] <= first["t"] + 1
    assert first["t"] <= last["t"] < last["gone"]


def test_in_another_pid_namespace_no_process_is_described(child, proc_with):
    lines = Lines()
    module = FakeNvml(FakeGpu(processes=[(child.pid, 1)]))
    with sampling(module, lines, proc=proc_with(child.pid, "pid:[4026531999]")):
        lines.until(kind("slow"), 2)

    assert lines.of("process") == []


def test_a_recording_of_ours_is_recognised_and_read(store, tmp_path):
    for name in ("gpus.jsonl", "gpus.jsonl.gz"):
        recorder, lines = Recorder(tmp_path / name), Lines()

        def both(line, recorder=recorder, lines=lines):
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


def test_a_recorder_goes_on_after_one_that_was_killed_inside_a_line(tmp_path):
    path = tmp_path / "gpus.jsonl"
    path.write_bytes(b'{"kind":"meta"}\n{"kind":"fa')

    recorder = Recorder(path)
    recorder.add({"kind": "clock"})
    recorder.close()

    kept = path.read_bytes().splitlines()
    assert kept[:3] == [b'{"kind":"meta"}', b'{"kind":"fa', b'{"kind":"clock"}']


def test_a_compressed_recording_is_never_written_over(tmp_path):
    path = tmp_path / "gpus.jsonl.gz"
    path.touch()
    with pytest.raises(FileExistsError):
        Recorder(path)


def test_a_recorder_stops_where_the_disk_is_full():
    recorder = Recorder(Path("/dev/full"))
    for _ in range(10_000):
        recorder.add({"kind": "fast", "t": 1.0})

    recorder.wait(threading.Event(), None)
    recorder.close()

    assert recorder.problem == "No space left on device"


def test_the_recorder_says_where_there_is_no_driver(tmp_path):
    record = [sys.executable, "-m", "goodput_ingest.sources.nvml", "--out", str(tmp_path / "x")]
    try:
        done = subprocess.run(record, capture_output=True, text=True, check=False, timeout=20)
    except subprocess.TimeoutExpired:  # it records
        pytest.skip("this machine has NVIDIA's driver")

    assert done.stderr.startswith("nvml: NVML cannot be used")
    assert done.returncode == 1
