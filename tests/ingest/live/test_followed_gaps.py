"""A followed log that is recognised and gives no step, save or row is named with what it lacks."""

from datetime import datetime

import pytest
from tests.ingest.job_log_lines import ITERATION

from goodput_ingest.live.tail import Tail

NOW = datetime.fromisoformat("2026-11-20T12:00:00")
STEP = ITERATION.format(second=11, step=1, ms=1000.0)
SAVE = "  successfully saved checkpoint of iteration 1 to /ckpt\n"
LLAMA_FACTORY = '{"current_steps": 3, "total_steps": 10, "loss": 1.2}\n'


@pytest.fixture
def logs(tmp_path):
    return Tail(folder=str(tmp_path), reads="job-log", pattern="*.out", timezone="UTC")


def said_of(logs, store, tmp_path, text):
    """Return what is said of a log with this text, once it was polled."""
    (tmp_path / "train.out").write_text(text)
    for batch in logs.poll({}, NOW):
        store.load(batch)
    return (logs.skipped or "").replace(f"{tmp_path}/", "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (STEP, ""),  # young: the first save may come yet
        (STEP + SAVE, "train.out: job-log: steps and no finished save were read; line 2"),
        ("[titan] starting\n[titan] x step: 1 loss: 2\n", "train.out: job-log: no row was read"),
    ],
    ids=["a step", "a save of another form", "a step of another form"],
)
def test_what_a_followed_log_lacks_is_said(logs, store, tmp_path, text, said):
    found = said_of(logs, store, tmp_path, text)

    assert found[: len(said)] == said
    assert bool(found) == bool(said)


def test_a_log_that_gives_what_was_missing_is_named_no_more(logs, store, tmp_path):
    assert said_of(logs, store, tmp_path, STEP + SAVE)

    whole = STEP + SAVE + SAVE.replace(" of ", " from ")

    assert said_of(logs, store, tmp_path, whole) == ""


def test_doctor_names_what_files_of_a_followed_folder_lack(logs, tmp_path):
    (tmp_path / "a.out").write_text(STEP + SAVE)
    (tmp_path / "b.out").write_text(LLAMA_FACTORY)

    _, *found = (text.replace(f"{tmp_path}/", "") for text in logs.probe())

    assert [text[:50] for text in found] == [
        "a.out: job-log: steps and no finished save were re",
        "b.out: trainer_log.jsonl of LLaMA-Factory is not r",
    ]
