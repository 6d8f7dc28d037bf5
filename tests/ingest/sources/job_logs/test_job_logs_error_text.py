"""Failures by the text of a log's lines, and the loss that a step's line prints."""

import csv
import math
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from tests.ingest.job_log_lines import parsed

from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.job_logs.failure_kinds import HINTS, KINDS, kind_of
from goodput_ingest.sources.job_logs.loss import loss_of

# what shells, schedulers and programs print when they fail: a row each, of one line or more
PUBLIC = list(
    csv.DictReader(
        (Path(__file__).parent / "public_failures.csv").read_text().splitlines(keepends=True)
    )
)
REFERENCE = Path(__file__).parents[4] / "queries/goodput_queries/sql/reference"
LINES = {
    "torch.cuda.OutOfMemoryError: CUDA out of memory.": "oom",
    "RuntimeError: CUDA error: uncorrectable ECC error encountered": "gpu_hardware",
    "RuntimeError: No CUDA GPUs are available": "gpu_unavailable",
    "RuntimeError: CUDA error: an illegal memory access was encountered": "cuda_error",
    "RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED": "cuda_error",
    "slurmstepd: error: Detected 1 oom_kill event in StepId=14.0.": "host_memory",
    "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 8 GiB": "host_memory",
    "RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error.": "bus_error",
    "RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed.": "sigkill",
    "ImportError: libcudnn.so.9: cannot open shared object file": "missing_module",
    "OSError: [Errno 28] No space left on device": "disk_full",
    "OSError: [Errno 116] Stale file handle: '/data'": "storage",
    "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1": "nccl_error",
    "ncclSystemError: System call (e.g. socket, malloc) failed": "nccl_error",
    "torch.distributed.DistNetworkError: The client socket has timed out": "network",
    "RuntimeError: Gloo connectFullMesh failed with error": "network",
    "srun: error: node004: task 27: Segmentation fault (core dumped)": "segfault",
    "srun: error: node004: task 3: Exited with exit code 137": "sigkill",
    "srun: error: node004: task 3: Exited with exit code 1": "exception",
    "ValueError: batch size is 0": "exception",
    "    AssertionError": "assertion",
    "found NaN in local forward loss calculation": "nan",
    "loss = inf, stopping": "nan",
    "Epoch 2 | step 4100 | loss nan": "nan",
    "run.sh: line 7:   71 segmentation fault (core dumped)  python train.py": "segfault",
    "run.sh: line 7:   71 aborted (core dumped)  python train.py": "sigabrt",
}
NO_FAILURE = [
    "RuntimeError: DataLoader worker (pid 7) is killed by signal: Terminated.",
    "torch.distributed.elastic.multiprocessing.api.SignalException: got signal: 15",
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
    "INFO retrying after ConnectionError: reset by peer",  # a report of one, not its end
    " iteration 3/ 9 | lm loss: 7.1E+00 | loss scale: 1.0 | number of nan iterations:   0 |",
    "validation error: 0.12",
    "Process finished with exit code 0",
    "using default device",
    "slurmstepd: error: couldn't chdir to `/home/u': No such file or directory: going to /tmp",
    "rm: cannot remove 'core': No such file or directory",
    "WARNING: /etc/nccl.conf: Permission denied",
    "loss.py:12: RuntimeWarning: divide by zero encountered in log",
    "subprocess.CalledProcessError: Command 'train' returned non-zero exit status 1.",
]


@pytest.mark.parametrize("text", LINES)
def test_the_kind_of_a_line_is_the_most_specific(text):
    assert kind_of(text) == LINES[text]
    assert any(hint in text for hint in HINTS)


@pytest.mark.parametrize("row", PUBLIC, ids=lambda row: row["text"][:60])
def test_the_kind_of_a_public_failure_is_that_of_its_most_specific_line(row):
    lines = [line for line in row["text"].splitlines() if any(hint in line for hint in HINTS)]

    assert min(filter(None, map(kind_of, lines)), key=KINDS.index) == row["kind"]


@pytest.mark.parametrize("text", NO_FAILURE)
def test_other_lines_have_no_kind(text):
    assert kind_of(text) is None


def test_each_kind_has_its_meaning_in_the_same_order():
    rows = list(csv.DictReader((REFERENCE / "failure_kinds.csv").read_text().splitlines()))

    assert [row["kind"] for row in rows][: len(KINDS)] == list(KINDS)
    assert [int(row["position"]) for row in rows] == list(range(1, len(rows) + 1))
    assert all(row["class"] and row["label"] and row["what_to_do"] for row in rows)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("MemoryError\n", "host_memory"),
        ("bash: line 1: 77 Killed   python x.py\n", "sigkill"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n", "oom"),
    ],
)
def test_a_log_without_any_time_has_that_at_which_it_was_read_out(store, tmp_path, text, kind):
    read_out = ReadOptions(observed_at=datetime(2026, 8, 20, 15))  # noqa: DTZ001 -- naive, UTC

    (event,) = parsed(store, tmp_path, text, read_out)

    assert (event["kind"], event["at"]) == (kind, "15:00:00.000")


@pytest.mark.parametrize(
    ("code", "kind"),
    [(-9, "sigkill"), (-11, "segfault"), (-7, "bus_error"), (-15, "other"), (1, "exception")],
)
def test_the_root_cause_of_torchrun_has_the_kind_of_its_signal(store, tmp_path, code, kind):
    block = (
        "Root Cause (first observed failure):\n  time      : 2026-08-20_14:31:02\n"
        f"  host      : n1\n  rank      : 3 (local_rank: 3)\n  exitcode  : {code} (pid: 5)\n"
        "  traceback : none\n"
    )

    (event,) = parsed(store, tmp_path, block, ReadOptions(zone=ZoneInfo("UTC")))

    assert event["kind"] == kind


@pytest.mark.parametrize(
    ("text", "loss"),
    [
        (" iteration 3/ 9 | lm loss: 7.1E+00 | loss scale: 1.0 |", 7.1),
        ("[titan] step: 120  loss:  6.41230  memory: 3GiB", 6.4123),
        ("{'loss': '1.932', 'grad_norm': '0.8'}", 1.932),
        ("Epoch 3: 45%| 450/1000 [02:15<02:45, train_loss=1.93]", 1.93),
        (" iteration 3/ 9 | lm loss: NAN | loss scale: 1.0 |", math.nan),
        ("step 2 | loss = -inf", -math.inf),
        ("val_loss: 3.0 loss scale: 65536.0", None),
        ("loss: 7.1.2", None),
    ],
)
def test_the_loss_of_a_line(text, loss):
    found = loss_of(text)

    assert found == loss or (loss is not None and math.isnan(loss) and math.isnan(found or 0.0))
