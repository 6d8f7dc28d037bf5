"""Log profiles, and histories of trackers: what a trainer's lines and metrics mean."""

import copy
import math
import re
from datetime import datetime
from pathlib import Path
from typing import get_args
from zoneinfo import ZoneInfo

import pytest
from tests.ingest.golden_cases import golden_path
from tests.ingest.job_log_lines import ITERATION
from tests.tables import each, gives, refuses

from goodput_ingest.formats.files import Part
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.job_logs.formats import formats, of_profile
from goodput_ingest.sources.job_logs.profile_draft import draft
from goodput_ingest.sources.job_logs.profile_examples import check_examples
from goodput_ingest.sources.job_logs.profiles.profile import (
    GROUPS,
    LineForm,
    Meaning,
    Profile,
    loads,
)
from goodput_ingest.sources.job_logs.reader import LogReader
from goodput_ingest.sources.job_logs.run_history import of_steps
from goodput_ingest.sources.registry import recognise
from goodput_queries.errors import IngestError

GOOD = r"""
name = "mine"
marks = ['mine v\d']
hints = ["it "]
[[line]]
means = "step"
pattern = 'it (?P<step>\w+): (?P<step_ms>[\d.]+) ms'
"""

PAGE = Path(__file__).parents[4] / "docs" / "log-profiles.md"
UTC = ZoneInfo("UTC")
AT = "2026-08-20T14:00:00Z "


def steps_of(text, known=None):
    """Return the numbers of the steps that a log gives."""
    reader = LogReader("log", ReadOptions(zone=UTC), known)
    rows = [row for some, _ in reader.read(Part(1, text.encode(), "")) for row in some]
    return [row["step"] for row in rows if row["event"] == "step"]


def stamped(lines):
    return "".join(f"2026-08-20T14:00:{at:02}Z {line}\n" for at, line in enumerate(lines))


test_a_profile_that_is_wrong_says_what = refuses(
    IngestError,
    lambda changed, to: loads(GOOD.replace(changed, to, 1), "mine.toml"),
    ("name =", "nom =", "mine.toml: Object contains unknown field `nom`"),
    ('"step"', '"pace"', "Invalid enum value 'pace'"),
    ("(?P<step>", "(?P<step", "the pattern of line 1 is no pattern"),
    ("step_ms", "step_h", "line 1 (step): step_h is no known group and not in `extra`"),
    ("?P<step>", "?:", "line 1 (step): it has no group `step`"),
    ('"step"', '"save"', "line 1 (save): it has no group `seconds` or `milliseconds`"),
    ("pattern =", "once = 'cycle'\npattern =", "`once` names cycle, which is no group of it"),
    ("pattern =", "fields.loss = 'x'\npattern =", "the pattern of field loss needs one group"),
    ("marks", "[", "mine.toml: this is not TOML"),
    (r"mine v\d", r"\N{DASH}", "a pattern of `marks` is no pattern"),
)


def example(text, expected, zone="UTC"):
    """Check a profile with this example."""
    said = f"timezone = '{zone}'\ntext = '{AT}{text}'\nexpected = {expected}\n"
    check_examples(loads(f"{GOOD}[[example]]\n{said}", "mine.toml"), "mine.toml")


test_an_example_that_gives_something_else_is_refused = refuses(
    IngestError,
    example,
    ("it 1: 2 ms", "[]", "mine.toml: example 1: its lines give 1 events (step), expected 0."),
    ("it 1: 2 ms", "[{step = 2}]", "mine.toml: example 1: event 1: step is 1, expected 2."),
    ("it 1: 2.2.2 ms", "[]",
     "example 1: line 1 is rejected (step_ms is '2.2.2', which is no number)."),
    ("it 1: 2 ms", "[]", "Mars", "profile mine: there is no time zone 'Mars'"),
)  # fmt: skip


def test_a_time_that_is_no_number_of_seconds_rejects_its_line():
    profile = loads(GOOD.replace("'it ", "'(?P<epoch_s>\\S+) it "), "mine.toml")
    reader = LogReader("log", ReadOptions(), (of_profile(profile),))
    text = b"1787234400 it 1: 2 ms\nnan it 2: 2 ms\n1e999 it 3: 2 ms\n"
    ((rows, rejects),) = reader.read(Part(1, text, ""))

    assert [row["step"] for row in rows] == [1]
    assert [reject.line for reject in rejects] == [2, 3]


def plain(*steps):
    return [f"step {step} loss 3" for step in steps]


test_steps_of_a_plain_loop = gives(lambda lines: steps_of(stamped(lines)), {
    "epochs from 0": (plain(0, 1, 0, 1), [1, 2, 3, 4]),
    "epochs from 10": (plain(10, 20, 10), [*range(10, 31)]),
    "done again": (plain(10, 11, 99, 50), [*range(10, 100), 50]),
    "thousands": (plain(999, "1,000", "1,001"), [999, 1000, 1001]),
    "rounded": (["step:999 loss:3", "step:1K loss:3", "step:1K loss:3"], [999, 1000]),
    "of an epoch": (
        ["Epoch: [2][  9/10]\tLoss 6e+00", "Epoch: [3][  1/10]\tLoss 5e+00"], [29, 30, 31]),
    "from 0": ([f"Epoch: [0]  [ {n}/10]  eta: 0:25  loss: 6" for n in (0, 1)], [1, 2]),
    "epochs of known length from 1": (
        [f"Epoch: [{at}/10]\tLoss 6" for at in ("1][ 0", "1][9", "2][0")], [*range(1, 12)]),
    "test": (["Test: [ 4/10]  loss: 6.9", "Test: [ 5/10]  loss: 6.8"], []),
    "no training": (["eval step 5/10 loss 3", "Loading: 3/9 [00:01<00:02, 2.2it/s]"], []),
    "no loss or rate": (["step 7: download took 3.2 s", "version 1.2, step 4"], []),
})  # fmt: skip


def test_a_log_with_the_marks_of_a_trainer_has_no_plain_steps():
    log = stamped(["step 400 loss 2.0"]) + ITERATION.format(second=11, step=1, ms=1000.0)
    assert steps_of(log) == [1]


def test_a_log_that_grows_dates_the_lines_that_have_no_time():
    reader = LogReader("log", ReadOptions())
    list(reader.read(Part(1, b"step 1 loss 3\n", "")))
    written = tuple(map(datetime.fromisoformat, ("2026-08-20T14:00:10", "2026-08-20T14:00:20")))

    part = Part(2, b"step 2 loss 3\nstep 3 loss 2\n", "", written=written)
    rows = [row for some, _ in reader.read(part) for row in some]

    assert [(row["step"], row["ts"].second) for row in rows] == [(2, 15), (3, 20)]
    assert '"at": "when the file grew"' in rows[0]["extra"]


LOOP = [
    f"INFO: it {step:04}/1000 | xent-loss {3 - step / 100:.3f} | 2.5 it/s | 81,000 tok/s"
    for step in range(1, 6)
]


SAVED = [*LOOP[:3], "Saving checkpoint to /c", "Saved checkpoint at step 3", *LOOP[3:]]
EPOCHS = [line for n in range(3) for line in (f"Epoch {n}", "lr: 0.1", f"Epoch time: 9.{n % 2} s")]
BARS = [f"steps: {n}%|{'#' * n}  | {n}/99 [00:5{n}<1:06:54,  1.2s/it, loss=3]" for n in (1, 2, 3)]


@each(
    (SAVED, ["step", "save_begin", "save_end"], [1, 2, 3, 4, 5]),
    (EPOCHS, ["training", "step"], [0, 1, 2]),
    ([*BARS, *(f"epoch {n}/80" for n in range(9))], ["step"], [1, 2, 3]),
    ([f"Epoch {n}, Time {n * 900.5}s, Loss 3" for n in range(1, 4)], ["step"], [1, 2, 3]),
)
def test_a_draft_reads_the_log_that_it_was_made_from(log, means, steps):
    profile = loads(draft("my loop", log), "draft")

    check_examples(profile, "draft")
    assert profile.name == "my-loop"
    assert [form.means for form in profile.line] == means
    assert steps_of(stamped(log), (of_profile(profile),)) == steps
    assert "Time " not in log[0] or "step_s" not in draft("of all epochs", log)


test_a_log_without_steps_has_no_draft = refuses(
    IngestError,
    lambda lines: draft("x", lines),
    (["one", "two", "three"] * 9, "there are no steps to draft a profile from"),
    (["{", *LOOP], "it is one JSON document, not the lines of a log."),
)


def test_the_page_of_log_profiles_has_a_profile_that_is_right_and_names_all_keys():
    page = PAGE.read_text()
    (example,) = re.findall(r"```toml\n(name = .*?)```", page, re.DOTALL)

    check_examples(loads(example, "page"), "page")

    named = set(re.findall(r"`(\w+)`", page))
    keys = {*Profile.__struct_fields__, *LineForm.__struct_fields__} - {"name", "line", "pattern"}
    assert {*get_args(Meaning), *GROUPS, *keys} - {"almost", "example", "documentation"} <= named


HISTORY = '{"_step": 1, "_timestamp": 1795805154.0, "loss": 3}\n'
ENTRY = "1795805150561 3.0 1\n"
EVENTS = golden_path("tensorboard/scalars_of_every_second_step/input.tfevents").read_bytes()


def read(path, **options):
    """Return run, event, step and loss of each row of a file, and its rejects."""
    batches = list(recognise(path)(path, ReadOptions(**options)).extract())
    rows = [r for b in batches for r in b.rows.select("run_id", "event", "step", "loss").rows()]
    return rows, [reject.reason for batch in batches for reject in batch.rejects]


def events_of(path, content, **options):
    """Return the rows of a file with this content."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read(path, **options)[0]


test_steps_are_entries_of_the_training_loss_else_of_another_metric_of_training = gives(
    of_steps,
    (["lr", "train/loss"], "train/loss"), (["eval/loss", "lr"], "lr"),
    (["train_loss", "grad_norm"], "train_loss"), (["lm loss", "lm loss validation"], "lm loss"),
    (["system/gpu_0_utilization", "eval_loss"], None),
)  # fmt: skip


def test_of_metrics_of_an_mlflow_run_one_gives_steps_and_another_says_it_is_there(tmp_path):
    metrics = tmp_path / "mlruns" / "1" / "5a4c" / "metrics"

    steps = events_of(metrics / "train" / "loss", ENTRY)
    others = events_of(metrics / "a", ENTRY)

    assert steps == [("5a4c", "step", 1, 3.0)]
    assert others == [("5a4c", "metric", None, None)]


@each(("wandb/offline-run-20261127_184553-grymqhhh/files", "grymqhhh"), ("exports", "llama"))
def test_a_wandb_run_is_that_of_its_folder_else_of_the_file(tmp_path, folder, run):
    assert events_of(tmp_path / folder / "llama.jsonl", HISTORY) == [(run, "step", 1, 3.0)]
    assert events_of(tmp_path / folder / "llama.jsonl", HISTORY, run_id="a")[0][0] == "a"


# written by wandb 0.31 in offline mode, without statistics and environment of its machine
OFFLINE_RUN = Path(__file__).with_name("offline_run.wandb")


def test_the_file_of_a_wandb_run_has_its_steps_and_its_end():
    rows, rejects = read(OFFLINE_RUN)

    assert {run for run, *_ in rows} == {"8w2kq1zt"}
    assert [event for _, event, *_ in rows[:2]] == ["job.start", "failure"]
    losses = {step: loss for *_, step, loss in rows if loss is not None}
    assert list(losses) == [10, 20, 30, 40]
    assert (losses[20], math.isnan(losses[40])) == (2.8, True)
    assert [step for *_, step, _ in rows[2:]] == [*range(1, 41)]
    assert rejects == []


@pytest.mark.parametrize("length", [8, 12, 40_000])
def test_the_file_of_a_wandb_run_that_goes_on_ends_with_its_last_record(tmp_path, length):
    path = tmp_path / "run-8w2kq1zt.wandb"
    path.write_bytes(OFFLINE_RUN.read_bytes()[:length])

    rows, (reject,) = read(path)

    assert "failure" not in {event for _, event, *_ in rows}
    assert reject.startswith("wandb-history: the file is cut or damaged, or its run goes on: ")


def test_a_tensorboard_run_is_its_folder_and_what_is_below_for_validation_has_no_steps(tmp_path):
    name = "events.out.tfevents.1"
    files = [tmp_path / "llm" / below / name for below in ("", "train", "validation")]
    found = [{row[:2] for row in events_of(file, EVENTS)} for file in files]

    both = {("llm", "step"), ("llm", "metric")}
    assert found == [both, both, {("llm", "metric")}]


def test_copies_of_a_reader_share_its_formats_and_profiles():
    reader = LogReader("a.log", ReadOptions())
    known = {id(one.profile) for one in reader.formats if hasattr(one, "profile")}

    copied = copy.deepcopy(reader)

    assert copy.deepcopy(formats()) is formats()
    assert known
    assert {id(one.profile) for one in copied.formats if hasattr(one, "profile")} == known
