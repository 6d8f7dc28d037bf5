"""A process on a real GPU is described, from its start until it is gone, by the live reader."""

import getpass
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.ingest.nvml_sampling import Lines

from goodput_ingest.sources.nvml.library import Nvml, NvmlError
from goodput_ingest.sources.nvml.machine import sees_all_processes
from goodput_ingest.sources.nvml.sampler import Sampler
from goodput_ingest.sources.nvml.watch import Rhythm

SCRIPT = Path(__file__).with_name("nvml_on_real_gpu.py")
LOAD_S = 15


@pytest.fixture
def lines():
    try:
        nvml = Nvml()
        nvml.open()
        nvml.close()
    except NvmlError as error:
        pytest.skip(f"needs an NVIDIA GPU: {error.reason}")
    if not sees_all_processes():
        pytest.skip("needs the machine's own PID namespace: in a container pids are others")
    found = Lines()
    sampler = Sampler(nvml, found.add, "node7", Rhythm(0.5, 1.0))
    sampler.start()
    yield found
    sampler.stop()


@pytest.mark.machine
def test_a_process_on_a_real_gpu(lines):
    begun_s = time.time()
    command = [sys.executable, str(SCRIPT), "--keep-busy", "0", str(LOAD_S)]
    with subprocess.Popen(command, env={**os.environ, "SLURM_JOB_ID": "77"}) as load:
        load.wait()
        ended_s = time.time()
    (gone,) = lines.until(lambda line: line.get("pid") == load.pid and "gone" in line)

    assert abs(gone["start"] - begun_s) < 2
    assert ended_s - 1 < gone["gone"] < ended_s + 2
    facts = (gone["name"], gone["user"], gone["job"])
    assert facts == (SCRIPT.name, getpass.getuser(), "77")
