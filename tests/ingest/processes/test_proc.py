"""What `/proc` says of a process, and its command line as it is stored, without secrets."""

import getpass
import os
import subprocess
import sys
import time

import pytest
from tests.tables import gives

from goodput_ingest.processes import command_line, proc
from goodput_ingest.processes.command_line import short_name, without_secrets

UID = "1b2c3d4e-0001-4aaa-8bbb-123456789abc"
CONTAINER = "0f" * 32
CGROUPS = {
    "Slurm, cgroup v2": (
        "0::/system.slice/slurmstepd.scope/job_1042/step_0/user/task_0", ("1042", None, None)),
    "Slurm, several slurmd": ("0::/system.slice/n1_slurmstepd.scope/job_7", ("7", None, None)),
    "Slurm, cgroup v1": ("9:memory:/slurm/uid_1000/job_12/step_0\n1:a:/", ("12", None, None)),
    "a pod, systemd": (
        f"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID.replace('-', '_')}"
        f".slice/cri-containerd-{CONTAINER}.scope",
        (None, UID, CONTAINER)),
    "a pod, cgroupfs": (f"4:cpu:/kubepods/besteffort/pod{UID}/{CONTAINER}", (None, UID, CONTAINER)),
    "a container": (f"0::/system.slice/docker-{CONTAINER}.scope", (None, None, CONTAINER)),
    "a session": ("0::/user.slice/user-1000.slice/session-3.scope/job_5", (None, None, None)),
}  # fmt: skip


@pytest.fixture
def child():
    code = "import sys; print('ready', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", code, "--token", "abc", "--lr=1"]
    environment = {**os.environ, "SLURM_JOB_ID": "77", "HF_TOKEN": "hf_secret"}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as started:
        started.stdout.readline()
        yield started
        started.kill()


def test_a_process_of_this_machine(child):
    found = proc.process(child.pid)

    assert abs(found.start_s - time.time()) < 60  # btime is to the second
    assert found.user == getpass.getuser()
    assert found.command.endswith("--token *** --lr=1")
    assert (found.job, found.pod) == ("77", None)
    assert "hf_secret" not in repr(found)


def test_a_process_that_has_ended_is_none(child):
    child.stdin.close()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

    assert proc.process(child.pid) is None  # a zombie
    child.wait()
    assert proc.start_ticks(child.pid) is None


@pytest.mark.parametrize(("cgroup", "expected"), CGROUPS.values(), ids=CGROUPS)
def test_the_job_pod_and_container_of_a_cgroup(tmp_path, cgroup, expected):
    of_process = tmp_path / "5"
    of_process.mkdir()
    (tmp_path / "stat").write_text("cpu 1\nbtime 1795000000\n")
    (of_process / "stat").write_text("5 (a) b) S " + " ".join(["0"] * 18) + " 250 0 0\n")
    (of_process / "cgroup").write_text(cgroup + "\n")
    (of_process / "comm").write_text("kworker\n")
    (of_process / "status").write_text("Name:\tx\nUid:\t4294967294\t0\t0\t0\n")

    found = proc.process(5, tmp_path)

    assert (found.job, found.pod, found.container) == expected
    assert (found.start_s, found.user, found.name) == (1795000002.5, "uid 4294967294", "kworker")


test_a_command_is_called_by_its_script_or_program = gives(
    short_name,
    (["/usr/bin/python3", "-u", "/home/ann/exp/train.py", "--lr", "1"], "train.py"),
    (["python", "-m", "torch.distributed.run", "t.py"], "torch.distributed.run"),
    (["torchrun", "--config=old.py", "train.py"], "train.py"), (["bash", "run.sh"], "run.sh"),
    (["python3.11", "-c", "print(1)", "x.py"], "python3.11"),
    (["/opt/sim/bin/md_run", "-m", "input.txt"], "md_run"),
    (["./" + "x" * 5000], "x" * command_line.NAME_MAX_CHARS), ([], ""),
)  # fmt: skip


test_values_that_look_like_secrets_are_not_stored = gives(
    without_secrets,
    (["t.py", "--token", "abc", "--lr", "1"], "t.py --token *** --lr 1"),
    (["t.py", "--password=ab c", "x"], "t.py --password=*** c x"),
    (["t.py", "--password", "ab c"], "t.py --password ***"),
    (["t.py", "--hf_token=abc", "--my-api-key", "k"], "t.py --hf_token=*** --my-api-key ***"),
    (["env", "WANDB_KEY=abc", "A=b", "lr=0.1"], "env WANDB_KEY=*** A=*** lr=0.1"),
    (["sh", "-c", "t.py --secret abc; A=b u"], "sh -c t.py --secret ***; A=*** u"),
    (["t.py", '{"api_key": "abc", "lr": 1}'], 't.py {"api_key": ***, "lr": 1}'),
    (["curl", "-H", "Authorization: Bearer abc"], "curl -H Authorization: Bearer ***"),
    (["t.py", "s3://ann:abc@host/x"], "t.py s3://***@host/x"),
    (["t.py", "http://h/?a=1&token=abc"], "t.py http://h/?a=1&token=***"),
    (["t.py", "hf_" + "a" * 34], "t.py ***"),
    (["t.py", "--max-tokens", "5", "--tokenizer=x", "--monkey", "m", "--auth", "-v"],
     "t.py --max-tokens 5 --tokenizer=x --monkey m --auth -v"),
    (["t.py", "a\nb\x1b[31m"], "t.py a b\x1b[31m"),  # stored without control characters
)  # fmt: skip


def test_a_long_command_line_is_cut():
    found = without_secrets(["t.py", "-" + "a-." * 100_000 + "token", "x" * 100_000])
    assert len(found) == command_line.COMMAND_MAX_CHARS
