"""What the NVML reader takes from its machine: figures of /proc, the installed package."""

import subprocess
import sys

import pynvml
from tests.ingest.fake_nvml import FakeGpu, FakeNvml

from goodput_ingest.sources.nvml import machine, readings
from goodput_ingest.sources.nvml.gpm import Gpm
from goodput_ingest.sources.nvml.library import Nvml

READER_MODULES = "gpu, sampler, recorder, __main__"


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
    assert found["disk_read_sectors"] == 100
    assert found["disk_write_sectors"] == 10
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

    gpm = Gpm(Nvml(module), module.gpus[0])

    asked = gpm._asked
    assert [metric.metricId for metric in asked.metrics[: asked.numMetrics]] == list(
        readings.GPM.values()
    )


def test_the_reader_needs_nothing_but_python_and_pynvml():
    """It runs on compute nodes, where the dashboard's packages are not installed."""
    code = (
        "import sys\n"
        "for name in ('polars', 'duckdb', 'pyarrow', 'numpy', 'goodput_queries'):\n"
        "    sys.modules[name] = None\n"
        f"from goodput_ingest.sources.nvml import {READER_MODULES}\n"
    )

    subprocess.run([sys.executable, "-c", code], check=True)
