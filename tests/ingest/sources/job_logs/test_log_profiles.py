"""Log profiles: data that says what a trainer's lines mean, checked when it is loaded."""

import re
from datetime import datetime
from pathlib import Path
from typing import get_args
from zoneinfo import ZoneInfo

import pytest
from tests.ingest.job_log_lines import ITERATION

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


@pytest.mark.parametrize(
    ("changed", "to", "reason"),
    [
        ("name =", "nom =", "Object contains unknown field `nom`"),
        ('"step"', '"pace"', "Invalid enum value 'pace'"),
        ("(?P<step>", "(?P<step", "the pattern of line 1 is no pattern"),
        ("step_ms", "step_h", "line 1 (step): step_h is no known group and not in `extra`"),
        ("?P<step>", "?:", "line 1 (step): it has no group `step`"),
        ('"step"', '"save"', "line 1 (save): it has no group `seconds` or `milliseconds`"),
        ("pattern =", "once = 'cycle'\npattern =", "`once` names cycle, which is no group of it"),
        ("pattern =", "fields.loss = 'x'\npattern =", "the pattern of field loss needs one group"),
        ("marks", "[", "this is not TOML"),
        (r"mine v\d", r"\N{DASH}", "a pattern of `marks` is no pattern"),
    ],
)
def test_a_profile_that_is_wrong_says_what(changed, to, reason):
    with pytest.raises(IngestError) as refused:
        loads(GOOD.replace(changed, to, 1), "mine.toml")

    assert str(refused.value).startswith("mine.toml: ")
    assert reason in str(refused.value)


@pytest.mark.parametrize(
    ("text", "expected", "reason"),
    [
        (f"{AT}it 1: 2 ms", "[]", "its lines give 1 events (step), expected 0"),
        (f"{AT}it 1: 2 ms", "[{step = 2}]", "event 1: step is 1, expected 2"),
        (
            f"{AT}it 1: 2.2.2 ms",
            "[]",
            "line 1 is rejected (step_ms is '2.2.2', which is no number)",
        ),
    ],
)
def test_an_example_that_gives_something_else_is_refused(text, expected, reason):
    profile = loads(f"{GOOD}[[example]]\ntext = '{text}'\nexpected = {expected}\n", "mine.toml")

    with pytest.raises(IngestError) as refused:
        check_examples(profile, "mine.toml")

    assert str(refused.value) == f"mine.toml: example 1: {reason}."


def test_a_time_that_is_no_number_of_seconds_rejects_its_line():
    profile = loads(GOOD.replace("'it ", "'(?P<epoch_s>\\S+) it "), "mine.toml")
    reader = LogReader("log", ReadOptions(), (of_profile(profile),))
    text = b"1787234400 it 1: 2 ms\nnan it 2: 2 ms\n1e999 it 3: 2 ms\n"
    ((rows, rejects),) = reader.read(Part(1, text, ""))

    assert [row["step"] for row in rows] == [1]
    assert [reject.line for reject in rejects] == [2, 3]


@pytest.mark.parametrize(
    ("lines", "steps"),
    [
        (["step 0 loss 3", "step 1 loss 2", "step 0 loss 3", "step 1 loss 2"], [1, 2, 3, 4]),
        (["step 10 loss 3", "step 20 loss 2", "step 10 loss 2"], [10, *range(11, 31)]),
        (
            ["step 10 loss 3", "step 11 loss 2", "step 99 loss 2", "step 50 loss 2"],
            [10, 11, *range(12, 100), 50],
        ),
        (["step 999 loss 3", "step 1,000 loss 3", "step 1,001 loss 3"], [999, 1000, 1001]),
        (["Epoch: [2][  9/10]\tLoss 6e+00", "Epoch: [3][  1/10]\tLoss 5e+00"], [29, 30, 31]),
        (
            ["Epoch: [0]  [ 0/10]  eta: 0:25  loss: 6", "Epoch: [0]  [ 1/10]  eta: 0:25  loss: 6"],
            [1],
        ),
        (["Train: 1 [ 4/10 ( 40%)]  Loss: 6.9", "Train: 1 [ 5/10 ( 50%)]  Loss: 6.8"], [14, 15]),
        (["Test: [ 4/10]  loss: 6.9", "Test: [ 5/10]  loss: 6.8"], []),
        (["eval step 5/10 loss 3", "Loading: 3/9 [00:01<00:02, 2.2it/s]"], []),
        (["step 7: download took 3.2 s", "version 1.2, step 4"], []),
    ],
    ids=[
        "epochs from 0",
        "epochs from 10",
        "done again",
        "thousands",
        "of an epoch",
        "from 0",
        "share of an epoch",
        "test",
        "no training",
        "no loss or rate",
    ],
)
def test_steps_of_a_plain_loop(lines, steps):
    assert steps_of(stamped(lines)) == steps


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


def test_a_draft_reads_the_log_that_it_was_made_from():
    log = [*LOOP[:3], "Saving checkpoint to /c", "Saved checkpoint at step 3", *LOOP[3:]]

    profile = loads(draft("my loop", log), "draft")

    check_examples(profile, "draft")
    assert profile.name == "my-loop"
    assert [form.means for form in profile.line] == ["step", "save_begin", "save_end"]
    assert steps_of(stamped(log), (of_profile(profile),)) == [1, 2, 3, 4, 5]


def test_a_log_without_steps_has_no_draft():
    with pytest.raises(IngestError, match="there are no steps to draft a profile from"):
        draft("x", ["one", "two", "three"] * 9)


def test_names_are_of_one_format_each():
    names = [one.name for one in formats()]

    assert len(set(names)) == len(names)


def test_the_page_of_log_profiles_has_a_profile_that_is_right_and_names_all_keys():
    page = PAGE.read_text()
    (example,) = re.findall(r"```toml\n(name = .*?)```", page, re.DOTALL)

    check_examples(loads(example, "page"), "page")

    named = set(re.findall(r"`(\w+)`", page))
    keys = {*Profile.__struct_fields__, *LineForm.__struct_fields__} - {"name", "line", "pattern"}
    assert {*get_args(Meaning), *GROUPS, *keys} - {"almost", "example", "documentation"} <= named


def test_an_example_in_a_time_zone_that_is_none_is_refused():
    text = f"{GOOD}[[example]]\ntimezone = 'Mars'\ntext = 'x'\nexpected = []\n"

    with pytest.raises(IngestError, match="profile mine: there is no time zone 'Mars'"):
        check_examples(loads(text, "mine.toml"), "mine.toml")
