"""Figures that became worse are found, and are recorded with their reason."""

import json

import pytest
from tests.benchmarks import quick

BEFORE = {"yardstick s": 2.0, "full ledger s": 10.0, "events": 100, "tests, pure, recorded s": 40}


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ({}, []),
        ({"full ledger s": 10.9}, []),
        ({"full ledger s": 11.1}, ["full ledger s: 10 -> 11.1"]),
        ({"full ledger s": 20.0, "yardstick s": 4.0}, []),  # a machine half as fast
        ({"full ledger s": 10.0, "yardstick s": 1.0}, ["full ledger s: 10 -> 10"]),
        ({"events": 111, "yardstick s": 4.0}, ["events: 100 -> 111"]),
        (
            {"tests, pure, recorded s": 60, "yardstick s": 4.0},
            ["tests, pure, recorded s: 40 -> 60"],
        ),
        ({"page runs, warm s": 5.0}, []),  # was not measured before
    ],
)
def test_a_figure_is_worse_from_a_tenth_on(now, expected):
    assert quick.worse(BEFORE, BEFORE | now) == expected


def test_times_of_chance_are_not_judged():
    assert quick.worse(BEFORE | {"page s": 0.05}, BEFORE | {"page s": 0.15}) == []


@pytest.fixture
def record(tmp_path, monkeypatch):
    path = tmp_path / "record.jsonl"
    path.touch()
    monkeypatch.setattr(quick, "RECORD", path)
    monkeypatch.setattr(quick, "measure", lambda *_: BEFORE)
    quick.main([])
    return path


def test_a_worse_figure_is_recorded_with_its_reason_alone(record, monkeypatch):
    monkeypatch.setattr(quick, "measure", lambda *_: BEFORE | {"full ledger s": 12.0})

    with pytest.raises(SystemExit, match="say why"):
        quick.main([])
    quick.main(["--why", "it reads more"])

    first, second = [json.loads(line) for line in record.read_text().splitlines()]
    assert "why" not in first
    assert (second["why"], second["figures"]["full ledger s"]) == ("it reads more", 12.0)


def test_another_scale_is_not_compared(record, monkeypatch):
    monkeypatch.setattr(quick, "measure", lambda *_: BEFORE | {"full ledger s": 1.0e6})

    quick.main(["--gpus", "64"])

    assert len(record.read_text().splitlines()) == 2
