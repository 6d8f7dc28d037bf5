"""A file that lacks its zone, node, cluster or moment is refused with what to add."""

from zoneinfo import ZoneInfo

import pytest
from tests.ingest.job_log_lines import ITERATION

from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.gpu_table.source import GpuTable
from goodput_queries.errors import IngestError

UTC = ZoneInfo("UTC")
XID = "NVRM: Xid (PCI:0000:9b:00): 31, pid=7, name=python, MMU Fault"
XID_AT = f"[Tue Nov 18 13:00:00 2025] {XID}"
NO_ZONE = r"carries no offset from UTC.*--timezone"
NO_NODE = r"do not name their node.*--node"
SINCE_BOOT = r"count from boot.*dmesg -T.*journalctl"
SACCT = "{}JobIDRaw|State|Submit|Start|End\n{}7|COMPLETED|{}|1795175140|1795175200\n"
STEP = ITERATION.format(second=11, step=1, ms=1000.0)
LOGGED = "[2026-08-20 14:03:10,500] INFO {'loss': 1.9321, 'epoch': 0.12}\n"
UNDATED = "***** Running training *****\n" + "{'loss': 1.9321, 'epoch': 0.12}\n" * 3
WATCHDOG = (
    "[rank3]:[E820 14:41:09.582826421 ProcessGroupNCCL.cpp:689] [Rank 3] Watchdog caught "
    "collective operation timeout: WorkNCCL(SeqNum=45, OpType=ALLREDUCE, NumelIn=3, "
    "Timeout(ms)=14000) ran for 14061 milliseconds before timing out.\n"
)
DATED = "[2026-08-20 14:40:52.326] starting run hang attempt 0: world size 4\n"
TRACEBACK = "Traceback (most recent call last):\nMemoryError\n"
SCRAPE = 'DCGM_FI_DEV_POWER_USAGE{UUID="GPU-a",Hostname="n1"} 600\n'
NOT_WHEN = r"nothing says when a scrape was taken.*--observed-at"
INSPECTOR = "nccl_inspector_metrics_55aa8e95-02cb-59dd-8a6f-15cbd706e86e.prom"
BANDWIDTH = 'nccl_bus_bandwidth_gbs{node="vm",gpu="GPU2",collective="AllGather"} 60.5\n'
QUERY = "timestamp, uuid, power.draw [W]\n2026/11/27 18:37:24.961, GPU-a, 71.02 W\n"
NO_TIME = "uuid, power.draw [W]\nGPU-a, 71.02 W\n"
OF_TIME = "#Time     gpu  pwr\n#HH:MM:SS Idx  W\n 18:37:29  0   70\n"
DMON = "# gpu    pwr\n# Idx      W\n    0     70\n"
PLACED = {"node": "gpu01", "zone": UTC}
ZONED = {"zone": UTC, "node": "n7"}
# what is read as which source, with which options, and what it says
CASES = [
    ("kernel-log", XID_AT, {"node": "n7"}, NO_ZONE),
    ("kernel-log", f"2025-11-18 13:00:00 node7 kernel: {XID}", {"node": "n7"}, NO_ZONE),
    ("kernel-log", XID_AT, {"zone": UTC}, NO_NODE),
    ("kernel-log", f"2025-11-18T12:00:00+00:00 {XID}", {"zone": UTC}, NO_NODE),
    ("kernel-log", f"Nov 18 13:00:00 n7 kernel: {XID}", ZONED, r"carry no year.*--observed-at"),
    ("kernel-log", f"[12345.678901] {XID}", ZONED, SINCE_BOOT),
    ("kernel-log", f"[    5.678901] {XID}", ZONED, SINCE_BOOT),
    ("kernel-log", f"<4>[ 1.000000] {XID}", ZONED, SINCE_BOOT),
    ("kernel-log", f"4,1234,567890123,-;{XID}", ZONED, SINCE_BOOT),
    ("slurm", SACCT.format("", "", "1795175139"), {}, "--cluster"),
    ("slurm", SACCT.format("Cluster|", "lab|", "2026-11-20T11:45:39"), {},
     r"carries no offset.*--timezone.*SLURM_TIME_FORMAT=%s"),
    ("slurm", "NODELIST|STATE\nn1|idle\n", {"cluster": "lab"}, "--observed-at"),
    ("job-log", STEP, {}, "--timezone"),
    ("job-log", LOGGED, {}, "Name their time zone with --timezone"),
    ("job-log", UNDATED, {"zone": UTC}, r"events \(4 lines\) but no times"),
    ("job-log", TRACEBACK, {}, "--observed-at"),
    ("job-log", DATED + WATCHDOG, {}, "Name their time zone with --timezone"),
    ("job-log", WATCHDOG, {"zone": UTC}, r"line 1: the stamp 08-20 .* has no year"),
    ("dcgm", SCRAPE, {"name": "metrics.prom"}, NOT_WHEN),
    ("dcgm", SCRAPE, {"name": "n1_20261120T120000.prom"}, NOT_WHEN),
    ("dcgm", SCRAPE, {"name": "n1_20261399T120000Z.prom"}, NOT_WHEN),
    ("nccl-inspector", BANDWIDTH, {"name": INSPECTOR}, "--observed-at"),
    ("gpu-table", QUERY, {}, "carry no offset from UTC. Name their time zone"),
    ("gpu-table", QUERY.partition("\n")[2], PLACED, "line 1 comes before any header"),
    ("gpu-table", NO_TIME, PLACED, "Add timestamp to `nvidia-smi --query-gpu`"),
    ("gpu-table", DMON, PLACED, "Run nvidia-smi dmon with -o DT, or pipe it through ts"),
    ("gpu-table", OF_TIME, PLACED, "-o DT"),
    ("gpu-table", DMON, {}, "a number and no UUID. Name their node with --node"),
    ("gpu-table", QUERY.replace("uuid", "name"), PLACED, "Add uuid to `nvidia-smi --query-gpu`"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "text", "options", "why"), CASES)
def test_a_file_that_lacks_something_says_what_to_add(read_text, source, text, options, why):
    with pytest.raises(IngestError, match=why):
        read_text(source, text, **options)


def test_a_gpu_with_a_uuid_needs_no_node_and_the_ingest_says_what_that_costs(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(QUERY)

    (samples,) = GpuTable(path, ReadOptions(zone=UTC)).extract()

    assert samples.rows.select("gpu_uuid", "power_w").rows() == [("GPU-a", 71.02)]
    assert "name it with --node" in samples.note
