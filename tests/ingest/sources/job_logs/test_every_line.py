"""No line that bears a fact is lost: it gives a row, or is rejected, or is known to say nothing."""

import hashlib
import re
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goodput_ingest.formats import files
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.job_logs.source import JobLog
from goodput_ingest.sources.kernel_log.kernel_log import KernelLog

OPTIONS = ReadOptions(zone=ZoneInfo("UTC"), node="n1")
STARTED = "***** Running training *****\n  Num Epochs = 1\n  Total optimization steps = 1,000\n"
STEP_0 = re.compile(r"(?:step[:=]|'epoch': ')\s*0*\.?0*\b(?![.\d])")  # nothing is finished yet
# a line as it is printed, and the words by which anyone would take it for a step, a save or a fault
LINES = {
    "megatron step": (
        " [2026-08-20 14:03:11.482913] iteration      120/   50000 | consumed samples: 61440 |"
        " elapsed time per iteration (ms): 4021.7 | lm loss: 7.104512E+00 | loss scale: 1.0 |",
        ("iteration  ", "| elapsed time per iteration"),
    ),
    "megatron save": (
        "  [2026-08-20 14:20:21.730112] successfully saved checkpoint from iteration     400 to /c",
        (" saved checkpoint", " iteration "),
    ),
    "torchtitan": (
        "[titan] 2026-08-20 14:03:11,482 - root - INFO - step: 120  loss:  6.41230  tps: 8,214",
        ("[titan]", " step:", " loss:"),
    ),
    "hf-trainer": (
        "2026-08-20T14:03:12Z {'loss': '1.932', 'grad_norm': '0.8812', 'epoch': '0.12'}",
        ("{'loss': ", "'epoch': "),
    ),
    "lightning": (
        "2026-08-20T14:03:12Z Epoch 3:  45%|####      | 450/1000 [02:15<02:45,  3.32it/s, v_num=7]",
        ("Epoch 3:", "it/s"),
    ),
    "nemo step": (
        "2026-08-20T14:03:12Z Training epoch 0, iteration 119/4999 | lr: 3e-05 | global_step: 119 |"
        " reduced_train_loss: 7.104 | train_step_timing in s: 4.021",
        ("Training epoch ", " iteration "),
    ),
    "nemo save": (
        "[NeMo I 2026-08-20 14:20:21 nemo_logging:393] Global Checkpoint Save : Rank: 0 : "
        "Iteration: 400 : Start time: 1787235602.001s : Save duration: 19.612s",
        ("Global Checkpoint Save ",),
    ),
    "deepspeed step": (
        "[2026-08-20 14:03:11,482] [INFO] [logging.py:128:log_dist] [Rank 0] step=120, skipped=0, "
        "lr=[2.4e-05], mom=[(0.9, 0.95)]",
        (" step=", " skipped="),
    ),
    "deepspeed save": (
        "[2026-08-20 14:20:02,001] [INFO] [logging.py:128:log_dist] [Rank 0] [Torch] Checkpoint "
        "global_step400 is ready now!",
        (" Checkpoint global_step",),
    ),
    "vllm": (
        "2026-08-20T14:03:11Z INFO 08-20 14:03:11 [loggers.py:123] Engine 000: Avg prompt "
        "throughput: 812.4 tokens/s, Avg generation throughput: 1530.2 tokens/s, Running: 24 reqs, "
        "Waiting: 3 reqs, GPU KV cache usage: 41.7%",
        ("Avg generation throughput:", " Running:"),
    ),
    "xid": (
        "2026-08-20T14:03:11+0000 n1 kernel: NVRM: Xid (PCI:0000:9b:00): 79, pid=7, GPU has fallen",
        (" kernel: NVRM:", " Xid ("),
    ),
}


def part(text, first_line):
    """Return lines as a part of a file."""
    data = text.encode()
    return files.Part(first_line, data, hashlib.sha256(data).hexdigest())


@st.composite
def altered(draw, line):
    """Return a line of another release or a fork, or one that was cut: a slice is gone or new."""
    begin = draw(st.integers(0, len(line)))
    end = draw(st.integers(begin, min(begin + 12, len(line))))
    new = draw(st.sampled_from(["", "", " ", "x", "7", "12.5/13.0", "123456789012345678", ": "]))
    return line[:begin] + new + line[end:]


@pytest.mark.parametrize(("line", "words"), LINES.values(), ids=LINES)
def test_the_line_as_it_is_printed_gives_a_row(line, words):
    assert outcome(line)[0] > 0
    assert all(word in line for word in words)


@pytest.mark.parametrize(("line", "words"), LINES.values(), ids=LINES)
@given(data=st.data())
@settings(max_examples=200)
def test_an_altered_line_gives_a_row_or_is_rejected(line, words, data):
    lines = data.draw(st.lists(altered(line), min_size=1, max_size=3))

    found = {text: outcome(text) for text in lines}

    silent = [text for text, (rows, rejects) in found.items() if not rows and not rejects]
    lost = [text for text in silent if not STEP_0.search(text)]
    assert [text for text in lost if all(word in text for word in words)] == []


def outcome(line):
    """Return the rows and the rejects that one line gives in a log of its own."""
    kind = KernelLog if " kernel: " in line or "Xid" in line else JobLog
    source = kind(Path("x.log"), OPTIONS)
    rows = rejects = 0
    if kind is JobLog:
        list(source.read(part(STARTED, 1)))
    for batch in source.read(part(line + "\n", 4)):
        rows, rejects = rows + batch.rows.height, rejects + len(batch.rejects)
    return rows, rejects
