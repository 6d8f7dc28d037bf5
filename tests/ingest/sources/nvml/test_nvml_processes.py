"""Processes on the GPUs: what they are, when they began and ended, by the `/proc` of a machine."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.ingest.fake_nvml import FakeGpu, FakeNvml
from tests.ingest.nvml_sampling import Lines, kind, sampling

from goodput_ingest.sources.nvml.machine import INIT_PID_NAMESPACE


@pytest.fixture
def child():
    with subprocess.Popen(
        [sys.executable, "-c", "input()", "train.py"], stdin=subprocess.PIPE
    ) as started:
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
    module = FakeNvml(
        FakeGpu(processes=[(child.pid, 1)]), FakeGpu("GPU-b", processes=[(child.pid, 1)])
    )
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
