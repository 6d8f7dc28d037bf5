"""Files that lack something, and files of other formats: which error names what is missing."""

import re
from zoneinfo import ZoneInfo

import pytest
from tests.ingest.golden_cases import OF_SOURCES
from tests.ingest.job_log_lines import ITERATION
from tests.tables import each

from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.gpu_table.source import GpuTable
from goodput_ingest.sources.registry import recognise, sources
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
SCRAPE = 'DCGM_FI_DEV_POWER_USAGE{UUID="GPU-a",Hostname="n1"} 600\n'
NOT_WHEN = r"nothing says when a scrape was taken.*--observed-at"
INSPECTOR = "nccl_inspector_metrics_55aa8e95-02cb-59dd-8a6f-15cbd706e86e.prom"
BANDWIDTH = 'nccl_bus_bandwidth_gbs{node="vm",gpu="GPU2",collective="AllGather"} 60.5\n'
QUERY = "timestamp, uuid, power.draw [W]\n2026/11/27 18:37:24.961, GPU-a, 71.02 W\n"
NO_TIME = "uuid, power.draw [W]\nGPU-a, 71.02 W\n"
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
    ("job-log", "Traceback (most recent call last):\nMemoryError\n", {}, "--observed-at"),
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
    ("gpu-table", "#Time     gpu  pwr\n#HH:MM:SS Idx  W\n 18:37:29  0   70\n", PLACED, "-o DT"),
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


REFUSALS = {
    "bundle": "expected a table of a bundle of format 1, found none.",
    "operation-trace": "this is not a Parquet file that can be read",
    **{name: of["refusal"] for name, of in OF_SOURCES.items()},
}


@pytest.mark.parametrize("name", sources())
def test_a_file_of_another_format_is_refused(tmp_path, name):
    path = tmp_path / "notes.txt"
    path.write_text("call Bob about node003\n" * 3)

    assert recognise(path) is None
    with pytest.raises(IngestError, match=re.escape(f"{path}: {REFUSALS[name]}")):
        list(sources()[name](path, ReadOptions()).extract())


START = (
    "vm:1182:1182 [3] NCCL INFO ncclCommInitRankConfig comm 0x24de2750 rank 3 nranks 4 cudaDev 3"
    " nvmlDev 5 busId 1b000 commId 0xbb7076cbf189c27b - Init START\n"
)
SPAN = (
    '{"name": "GET /index.html", "start_time": "2026-08-20T14:03:07Z", '
    '"end_time": "2026-08-20T14:03:11.5Z", '
    '"resource": {"attributes": {"nemo.run.id": "run7"}}}\n'
)
# texts that only look like those of a source
ALIKE = {
    "dcgm": (
        *("", "\n", "# HELP DCGM_FI_DEV_GPU_UTIL x\n", "node_load1 0.5\n"),
        "go_goroutines 12\nprocess_open_fds 9\n",
        'nccl_bus_bandwidth{rank="0"} 100\n',
        "DCGM_FI_DEV_GPU_UTIL, gauge, GPU utilization (in %).\n",
        'a text that quotes\nDCGM_FI_DEV_GPU_UTIL{gpu="0"} 5\nonce\nor twice\n',
    ),
    "slurm": (
        *("", "\n\n", "Account,AllocCPUS,JobID,JobIDRaw,State,Submit\n"),
        "JobID           JobName    State\n------------ ---------- ------\n",
        "JOBID|NAME|USER|STATE|SUBMIT_TIME|NODELIST\n7|x|alice|RUNNING|2026-11-20T11:45:39|n1\n",
        "NodeName=node001 Name=gpu Type=h100 File=/dev/gpu[0-7]\n",
        "NodeName=node[001-004] CPUs=16 RealMemory=64000 State=UNKNOWN\nPartitionName=gpu\n",
        "PartitionName=gpu AllowGroups=ALL Nodes=node[001-004] State=UP\n",
        "Cluster|Account|User|Partition|QOS\nlab|a|alice||normal\n",
        *("ts,node,state\n1,a,idle\n", "NODELIST STATE\nnode001 idle\n"),
    ),
    "nccl-debug": (START + "iteration 1 loss 2.0\n" * 5,),  # left to the logs of jobs
    "nccl-tests": ("# Rank 0", '{"results": []}', "size count type busbw", ""),
    "flight-recorder": ('{"entries": []}', ""),
    "job-events": (
        '# Events\nOne line is one event:\n\nas this:\n{"v": 1, "ts": 1787234549.25, '
        '"event": "step", "step": 401, "dur_s": 10.02}\nand so on.\n',
    ),
    "otel-spans": (SPAN,),
    "prometheus": ('{"status":"success","data":["up","DCGM_FI_DEV_GPU_UTIL"]}',),
}


@each(*((name, text) for name, texts in ALIKE.items() for text in texts))
def test_a_text_that_only_looks_alike_is_not_taken(tmp_path, name, text):
    assert not sources()[name].recognises(tmp_path / "rank_1", text.encode())
