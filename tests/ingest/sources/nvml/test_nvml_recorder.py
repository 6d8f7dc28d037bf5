"""The recorder that writes what is read of NVML to a file."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.ingest.fake_nvml import FakeGpu, FakeNvml
from tests.ingest.nvml_sampling import QUICK, Lines, kind

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.nvml.library import Nvml
from goodput_ingest.sources.nvml.recorder import Recorder
from goodput_ingest.sources.nvml.sampler import Sampler


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
    done = subprocess.run(
        [sys.executable, "-m", "goodput_ingest.sources.nvml", "--out", str(tmp_path / "x.jsonl")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    if done.returncode == 0:
        pytest.skip("this machine has NVIDIA's driver")
    assert done.stderr.startswith("nvml: NVML cannot be used")
    assert done.returncode == 1
