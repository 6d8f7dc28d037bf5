"""Failures by the text of a log's lines, its losses, and lines that only look like a fact."""

import csv
import math
import re
from datetime import datetime
from itertools import accumulate
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from tests.ingest.job_log_lines import ITERATION, parsed
from tests.tables import each

from goodput_ingest.formats.files import Part
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.job_logs.failure_kinds import HINTS, KINDS, RULES
from goodput_ingest.sources.job_logs.loss import loss_of
from goodput_ingest.sources.job_logs.reader import LogReader
from goodput_ingest.sources.job_logs.unread_lines import LISTED_MAX

# what shells, schedulers and programs print: a row each, of one line or more; no kind: no failure
PRINTED = [
    row
    for name in ("public_failures.csv", "printed_lines.csv")
    for row in csv.DictReader(Path(__file__).with_name(name).read_text().splitlines(keepends=True))
]
REFERENCE = Path(__file__).parents[4] / "queries/goodput_queries/sql/reference"


def kinds_of(text):
    """Return the failure kinds that are read of a text."""
    options = ReadOptions(zone=ZoneInfo("UTC"), observed_at=datetime.fromisoformat("2026-08-20"))
    reader = LogReader("log", options)
    rows = (row for some, _ in reader.read(Part(1, f"{text}\n".encode(), "")) for row in some)
    return [row["kind"] for row in rows if row["event"] == "failure"]


@pytest.mark.parametrize("row", PRINTED, ids=lambda row: row["text"][:60])
def test_the_kind_of_a_failure_is_that_of_its_most_specific_line_and_other_texts_have_none(row):
    assert min(kinds_of(row["text"]), key=KINDS.index, default="") == row["kind"]


def alternatives(pattern):
    """Return the parts of a pattern between the bars that stand in no group."""
    marks = re.findall(r"\\.|\[(?:\\.|[^\]\\])+\]|.", pattern)
    depths = accumulate((mark == "(") - (mark == ")") for mark in marks)
    is_end = [at == ("|", 0) for at in zip(marks, depths, strict=True)]
    return "".join("\0" * end or mark for end, mark in zip(is_end, marks, strict=True)).split("\0")


def test_every_rule_has_an_example_that_is_read():
    every = [line for row in PRINTED for line in row["text"].splitlines()]
    lines = [line for line in every if any(hint in line for hint in HINTS)]
    missing = []
    for rule in RULES:
        hinted = [line for line in lines if any(hint in line for hint in rule.hints)]
        for pattern in (rule.sure, rule.said):
            rules = [one[3:-1] for one in alternatives(pattern.pattern)]
            parts = [part for one in rules for part in alternatives(one)]
            found = [any(re.search(part, line, pattern.flags) for line in hinted) for part in parts]
            missing += [part for part, is_found in zip(parts, found, strict=True) if not is_found]
    assert missing == []


def test_each_kind_has_its_meaning_in_the_same_order():
    rows = list(csv.DictReader((REFERENCE / "failure_kinds.csv").read_text().splitlines()))
    assert [row["kind"] for row in rows][: len(KINDS)] == list(KINDS)
    assert [int(row["position"]) for row in rows] == list(range(1, len(rows) + 1))
    assert all(row["class"] and row["label"] and row["what_to_do"] for row in rows)


@each((-9, "sigkill"), (-11, "segfault"), (-7, "bus_error"), (-15, "other"), (1, "exception"))
def test_the_root_cause_of_torchrun_has_the_kind_of_its_signal(code, kind):
    block = (
        "Root Cause (first observed failure):\n  time      : 2026-08-20_14:31:02\n"
        f"  host      : n1\n  rank      : 3 (local_rank: 3)\n  exitcode  : {code} (pid: 5)\n"
        "  traceback : none\n"
    )

    assert kinds_of(block) == [kind]


@each(
    ("step 2 | loss = -inf", -math.inf), ("lm_loss: 1.100000E+01 | z_loss: 2.0 |", 11.0),
    ("z_loss: 24.6600 | per_token_loss: 3.1625 | lr: 9.990E-06", 3.1625),
    ("val_per_token_loss: 3.0 loss scale: 65536.0", None), ("loss: 7.1.2", None),
    ("step 12 loss 0,0512 lr 0,0001", 0.0512), ("step 12, loss 3, lr 0.1", 3.0),
    ("loss 1,234.5", None),
)  # fmt: skip
def test_the_loss_of_a_line(text, loss):
    assert loss_of(text) == loss


STEP = ITERATION.format(second=1, step=1, ms=1000.0)
SAVE = "checkpointer: flushed snapshot of step {} in 3.2 s\n"
SAVED = "2026-08-20T14:03:05Z  successfully saved checkpoint from iteration 7 to /c\n"
LOOKS = "the line looks like {} and is of no known format"


@each({
    "a save": (SAVE.format(7), "a finished save"),
    "a save, the other way round": ("ckpt-7.pt was uploaded to s3://c\n", "a finished save"),
    "a restore": ("engine: resuming from step 100\n", "a restore"),
    "a failure": ("rank 7: fabric watchdog tripped, giving up\n", "the failure of a job"),
    "a failure behind a time": ("14:03:05 trainer CRITICAL no peers\n", "the failure of a job"),
    "a setting": ("save_checkpoint_steps = 500, restore_from = none\n", None),
    "a file's name": ("config: /jobs/fatal_errors/snapshot.yaml\n", None),
    "what is to come": ("Checkpoints will be loaded from and saved to out/saved\n", None),
    "what may be": ("one file if checkpoint is saved in HF format\n", None),
    "a save that is read, too": (SAVE.format(7) + SAVED, None),
})  # fmt: skip
def test_what_looks_like_a_fact_is_rejected_if_nothing_says_it(store, tmp_path, line, looks_like):
    parsed(store, tmp_path, STEP + line)
    found = store.read("select line, reason, content from raw.rejects").rows()
    expected = [] if looks_like is None else [(2, LOOKS.format(looks_like), line.rstrip("\n"))]
    assert found == expected


def test_of_many_lines_the_first_ones_are_named(store, tmp_path):
    parsed(store, tmp_path, STEP + "".join(map(SAVE.format, range(20))))
    lines = store.read("select line from raw.rejects order by line")["line"].to_list()
    assert lines == [*range(2, 2 + LISTED_MAX)]
