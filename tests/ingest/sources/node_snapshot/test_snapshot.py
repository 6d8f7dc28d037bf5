"""Snapshots of a made-up machine: what is read, and what is unknown with its reason."""

import json

import pytest
from tests.ingest.fake_nvml import DRIVER_NOT_LOADED, NOT_SUPPORTED, FakeGpu, FakeNvml
from tests.tables import each, gives

from goodput_ingest.processes.command_line import HIDDEN
from goodput_ingest.sources.node_snapshot.found import grouped
from goodput_ingest.sources.node_snapshot.snapshot import take

NVME = "/dev/nvme0n1 /scratch xfs rw,noatime,attr2,inode64 0 0\n"
NFS = "10.0.0.1:/d /data nfs4 rw,hard,vers=4.2,clientaddr=10.0.0.7,password=x 0 0\n"
FILES = {
    "proc/cmdline": "BOOT_IMAGE=/vmlinuz root=UUID=1 iommu=pt isolcpus=2-3 quiet\n",
    "proc/cpuinfo": "processor\t: 0\nmodel name\t: AMD EPYC 9654\n",
    "proc/meminfo": "MemTotal:       2113412345 kB\nSwapTotal:             0 kB\n",
    "proc/self/mounts": f"proc /proc proc rw 0 0\n{NFS}{NVME}x /etc/hosts ext4 rw 0 0\n",
    "proc/7/limits": "Limit  Soft Limit  Hard Limit  Units\nMax stack size  8388608  x  bytes\n"
    "Max locked memory  65536  unlimited  bytes\nMax open files  1024  4096  files\n",
    "proc/7/status": "Name:\tpython\nCpus_allowed_list:\t0-3\nMems_allowed_list:\t0\n",
    "proc/7/cgroup": "0::/job_1\n",
    "proc/7/environ": "NCCL_IB_HCA=mlx5\0UCX_TOKEN=abc\0HOME=/root\0RUN_ID=llm\0",
    "proc/sys/vm/swappiness": "10\n", "proc/sys/net/ipv4/tcp_rmem": "4096\t131072\t6291456\n",
    "etc/nccl.conf": "# site\nNCCL_DEBUG=WARN\nNCCL_IB_HCA=ib\n",
    "sys/fs/cgroup/job_1/cpu.max": "400000 100000\n",
    "sys/fs/cgroup/job_1/cpu.stat": "usage_usec 5\nnr_throttled 3\n",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "0\n",
    "sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages": "16\n",
    **{
        f"sys/devices/system/cpu/cpu{n}/cpufreq/scaling_governor": "powersave" if n == 3 else "perf"
        for n in range(11)},
    "sys/class/infiniband/mlx5_0/ports/1/state": "4: ACTIVE\n",
    "sys/class/infiniband/mlx5_0/ports/1/rate": "400 Gb/sec (4X NDR)\n",
    "proc/driver/nvidia-nvswitch/devices/0000:05:00.0": "",
}  # fmt: skip


def machine_in(folder):
    """Return the root of a machine with these files."""
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def machine(tmp_path):
    return machine_in(tmp_path)


def taken(machine, module=None):
    return json.loads(take("n1", pid=7, root=machine, module=module or FakeNvml()))


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory):
    """Return what is taken of the machine as it is."""
    return taken(machine_in(tmp_path_factory.mktemp("machine")))


@each(
    ("vm.swappiness", "10"), ("net.ipv4.tcp_rmem", "4096 131072 6291456"),
    ("kernel.boot_parameters", "iommu=pt isolcpus=2-3"), ("cpu.model", "AMD EPYC 9654"),
    ("cpu.governor", "perf: 0-2,4-10; powersave: 3"), ("memory.total_gib", "2016"),
    ("memory.transparent_huge_pages.enabled", "madvise"),
    ("memory.huge_pages", "0: 2048kB; 16: 1048576kB"), ("infiniband.state", "ACTIVE"),
    ("mount:/data", "nfs4 rw,hard,vers=4.2"), ("mount:/scratch", "xfs rw,noatime,inode64"),
    ("fabric.switches", "1"), ("env:NCCL_IB_HCA", "mlx5"), ("env:NCCL_DEBUG", "WARN"),
    ("env:UCX_TOKEN", HIDDEN), ("env:HOME", None), ("mount:/etc/hosts", None),
    ("limit.memlock", "65536"), ("process.cpus", "0-3"), ("cgroup.cpu.max", "400000 100000"),
    ("cgroup.times_throttled", "3"),
)  # fmt: skip
def test_a_setting_is_as_the_system_has_it(snapshot, setting, value):
    assert snapshot["settings"].get(setting) == value


@each(
    ("kernel.numa_balancing", "No such file or directory"),
    ("cgroup.memory.max", "No such file or directory"),
    ("fabric.manager", "not in the machine's own PID namespace"),
    ("cpu.idle_states_disabled", "there is none"),
)
def test_what_cannot_be_read_is_unknown_with_the_reason(snapshot, setting, reason):
    assert snapshot["unknown"][setting] == reason
    assert setting not in snapshot["settings"]


def test_the_fabric_manager_is_found_by_its_process(machine):
    (machine / "proc/7/comm").write_text("nv-fabricmanage\n")
    assert taken(machine)["settings"]["fabric.manager"] == "running"


def test_it_names_the_run_of_the_process(snapshot):
    assert (snapshot["node"], snapshot["run_id"]) == ("n1", "llm")


def test_gpus_are_one_value_or_a_value_for_each_and_what_none_answers_is_unknown(machine):
    errors = {"nvmlDeviceGetVbiosVersion": NOT_SUPPORTED}
    other = FakeGpu("GPU-b", answers={"nvmlDeviceGetPersistenceMode": 0}, errors=errors)

    found = taken(machine, FakeNvml(FakeGpu("GPU-a", errors=errors), other))

    of_gpus = {name: text for name, text in found["settings"].items() if name.startswith("gpu.")}
    expected = {"count": "2", "model": "NVIDIA H200", "persistence": "on: 0; off: 1"}
    assert of_gpus | {f"gpu.{name}": text for name, text in expected.items()} == of_gpus
    assert "gpu.vbios" not in of_gpus
    assert found["unknown"]["gpu.vbios"] == "not supported"


def test_without_a_driver_or_an_environment_to_read_the_rest_is_read(machine):
    (machine / "proc/7/environ").unlink()

    found = taken(machine, FakeNvml(init_error=DRIVER_NOT_LOADED))

    assert found["unknown"]["gpu"] == "NVML Error with code 9"
    assert found["unknown"]["env"] == "it may not be read"
    assert found["settings"]["vm.swappiness"] == "10"


test_values_by_key_are_one_text = gives(
    grouped,
    ({"0": "a", "1": "a"}, "a"),
    ({"0": "a", "1": "a", "2": "a", "3": "b", "10": "a"}, "a: 0-2,10; b: 3"),
    ({"mlx5_10": "x", "mlx5_2": "y"}, "y: mlx5_2; x: mlx5_10"),
)
