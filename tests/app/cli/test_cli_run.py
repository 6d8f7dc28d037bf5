"""`goodput run` and `goodput watch`: a command runs as if alone, and leaves a record of a job."""

import contextlib
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time

import pytest
from tests.app.served import program

from goodput_ingest.processes.command_line import HIDDEN

PYTHON = [sys.executable, "-c"]
GOODPUT = [sys.executable, "-m", "goodput_app"]
PATIENCE_S = 30
SAYS_READY = "import signal, sys, time\nprint('ready', flush=True)\n"


@pytest.fixture
def start(tmp_path):
    """Return a function that starts a goodput command with records in `tmp_path`."""
    with contextlib.ExitStack() as stack:

        def started(name, *arguments, environment=None, **options):
            outside = {k: v for k, v in os.environ.items() if k not in ("RUN_ID", "SLURM_JOB_ID")}
            env = {**outside, "CUDA_VISIBLE_DEVICES": "0", **(environment or {})}
            command = [*GOODPUT, name, "--dir", str(tmp_path), *arguments]
            return stack.enter_context(program(command, env=env, text=False, **options))

        yield started


@pytest.fixture
def record(tmp_path):
    """Return a function that reads the events and the log of the record, less its times."""

    def read():
        (events,) = tmp_path.glob("*/*.jsonl")
        log = events.with_suffix(".out.log")
        lines = log.read_text().splitlines() if log.exists() else []
        rows = [json.loads(line) for line in events.read_text().splitlines()]
        return rows, [line.partition("Z ")[2] for line in lines]

    return read


def ready(process):
    assert process.stdout.readline() == b"ready\n"


def test_stdin_output_and_exit_code_pass_and_are_recorded(start, record):
    code = "import sys; print(sys.stdin.read()); print('bad', file=sys.stderr); sys.exit(3)"
    process = start("run", "--gpus", "1,GPU-x", "--", *PYTHON, code, stdin=subprocess.PIPE)

    out, err = process.communicate(b"hello", PATIENCE_S)

    events, log = record()
    assert (process.returncode, out) == (3, b"hello\n")
    assert err.startswith(b"bad\ngoodput: recorded in ")
    assert sorted(log) == ["bad", "hello"]
    assert [(e["event"], e["rank"], e.get("local_rank"), e.get("gpu_uuid")) for e in events] == [
        ("job.start", 0, 1, None), ("job.start", 1, None, "GPU-x"), ("failure", 0, 1, None),
    ]  # fmt: skip
    assert events[-1]["msg"] == "exit code 3"
    assert events[0]["run_id"].startswith("python")


def test_a_command_that_ends_well_ends_the_job(start, record):
    process = start("run", "--name", "a/b.1", *PYTHON, "pass", "--password", "abc")

    process.wait(PATIENCE_S)

    events, log = record()
    assert (process.returncode, log) == (0, [])
    assert [event["event"] for event in events] == ["job.start", "job.end"]
    assert events[0]["run_id"] == "a_b.1"
    assert "abc" not in str(events)


def test_one_rank_of_a_node_leaves_how_the_node_is_configured(start, tmp_path):
    until_it_is_there = (
        "import glob, os, time\n"
        "while not glob.glob(os.environ['JOB_EVENTS'] + '/*.snapshot.json'):\n    time.sleep(0.02)"
    )
    for rank, code in (("0", until_it_is_there), ("1", "pass")):
        variables = {"SLURM_LOCALID": rank, "NCCL_IB_HCA": "mlx5", "NCCL_TOKEN": "abc"}
        process = start("run", "--name", f"r{rank}", "--", *PYTHON, code, environment=variables)
        process.communicate(timeout=PATIENCE_S)

    (line,) = [json.loads(path.read_text()) for path in tmp_path.glob("*/*.snapshot.json")]
    assert line["run_id"] == "r0"
    assert line["settings"]["env:NCCL_IB_HCA"] == "mlx5"
    assert line["settings"]["env:NCCL_TOKEN"] == HIDDEN


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP])
def test_signals_reach_the_command(start, record, number):
    code = (
        f"import signal\nsignal.signal({int(number)}, lambda *_: exit(7))\n"
        f"{SAYS_READY}while True: time.sleep(1)"
    )
    process = start("run", *PYTHON, code)
    ready(process)

    process.send_signal(number)

    assert process.wait(PATIENCE_S) == 7
    assert record()[0][-1]["event"] == "failure"


def test_a_command_that_is_killed(start, record):
    code = f"import os\n{SAYS_READY}os.kill(os.getpid(), signal.SIGKILL)"
    assert start("run", *PYTHON, code).wait(PATIENCE_S) == 128 + signal.SIGKILL
    failure = record()[0][-1]
    assert (failure["kind"], failure["msg"]) == ("sigkill", "ended by signal 9 (Killed)")


def test_a_recorder_that_is_killed_leaves_what_was_recorded(start, record):
    process = start("run", *PYTHON, f"{SAYS_READY}sys.stdin.read()", stdin=subprocess.PIPE)
    ready(process)

    process.kill()
    process.wait(PATIENCE_S)

    events, log = record()
    assert ([event["event"] for event in events], log) == (["job.start"], ["ready"])


def test_a_reader_that_goes_away_ends_the_command_as_without_a_recorder(start):
    code = f"{SAYS_READY}signal.signal(signal.SIGPIPE, signal.SIG_DFL)\nwhile True: print('x')"
    process = start("run", *PYTHON, code)
    ready(process)

    process.stdout.close()

    assert process.wait(PATIENCE_S) == 128 + signal.SIGPIPE


def test_a_terminal_stays_a_terminal_and_progress_bars_pass_unchanged(start, record):
    code = (
        "import os, sys\nprint(sys.stdout.isatty(), sys.stderr.isatty(), os.get_terminal_size())\n"
        "for i in range(4): sys.stderr.write(f'\\r{i}/3'); sys.stderr.flush()\n"
        "sys.stderr.write('\\n')"
    )
    ours, theirs = pty.openpty()
    os.set_blocking(ours, False)
    process = start("run", *PYTHON, code, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)

    shown = b""
    while select.select([ours], [], [], PATIENCE_S)[0]:
        try:
            shown += os.read(ours, 65536)
        except OSError:
            break
    os.close(ours)

    assert process.wait(PATIENCE_S) == 0
    assert shown.startswith(
        b"True True os.terminal_size(columns=0, lines=0)\r\n\r0/3\r1/3\r2/3\r3/3\r\n"
    )
    assert record()[1][0].startswith("True True")
    assert record()[1][-1] == "3/3"


@pytest.mark.parametrize("command", ["no-such-command", "/etc/passwd"])
def test_what_cannot_be_started_or_watched_is_a_line(start, tmp_path, command):
    for name, what, code in (("run", command, 127), ("watch", "4194304", 1)):
        process = start(name, what)
        _, err = process.communicate(timeout=PATIENCE_S)
        assert (process.returncode, err.count(b"\n")) == (code, 1)

    assert err == b"there is no process 4194304 on this machine.\n"
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_does_not_stop_the_command(start, tmp_path):
    (tmp_path / "file").touch()
    process = start("run", "--dir", str(tmp_path / "file/below"), *PYTHON, "print(1)")

    out, err = process.communicate(timeout=PATIENCE_S)

    assert (process.returncode, out) == (0, b"1\n")
    assert b"Not a directory; nothing more is recorded" in err


def test_the_job_events_of_the_command_are_of_the_same_attempt(start, tmp_path):
    code = "import goodput_emitter as g\nwith g.run('llama'):\n    with g.step(1): pass"
    assert start("run", "--name", "mine", *PYTHON, code).wait(PATIENCE_S) == 0
    files = list(tmp_path.glob("mine-*/mine*.jsonl"))
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert {(row["run_id"], row["attempt"], row["pid"]) for row in rows} == {
        ("mine", rows[0]["attempt"], rows[0]["pid"])
    }
    assert len(files) == 2


def test_a_process_that_runs_already_is_watched_from_its_own_start(start, record, tmp_path):
    before_s = time.time()
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "2", "RUN_ID": "of-the-job"}
    with subprocess.Popen([*PYTHON, "input()"], stdin=subprocess.PIPE, env=environment) as watched:
        process = start("watch", str(watched.pid))
        while not list(tmp_path.glob("*/*.jsonl")):
            assert process.poll() is None
            select.select([], [], [], 0.05)
        watched.communicate(b"\n")
        ended_s = time.time()
    process.wait(PATIENCE_S)

    begun, ended = record()[0]
    assert (begun["event"], begun["run_id"], begun["local_rank"]) == ("job.start", "of-the-job", 2)
    assert abs(begun["ts"] - before_s) < 2  # btime is to the second
    assert (ended["event"], ended["process"]) == ("metric", "ended")
    assert ended_s - 1 < ended["ts"] <= time.time()
