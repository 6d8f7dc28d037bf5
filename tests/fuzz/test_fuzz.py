"""A few dozen cases of `make fuzz`, so that a reader that breaks is seen before a nightly run."""

import subprocess
import sys

import pytest
from tests.fuzz.corpus import corpus
from tests.fuzz.worker import made, run

from goodput_ingest.sources.registry import recognise
from goodput_queries.check import check

SEED, FILES, AT_ONCE = 20, 120, 40


def test_every_file_of_the_corpus_is_of_a_known_format(tmp_path):
    for golden in corpus():
        path = tmp_path / f"file{golden.suffixes}"
        path.write_bytes(golden.content)

        assert recognise(path) is not None, golden.name


def test_a_case_is_the_same_file_whenever_it_is_made():
    assert made(SEED, 7) == made(SEED, 7)
    assert made(SEED, 7)[1] != made(SEED, 8)[1]


@pytest.mark.parametrize("first", range(0, FILES, AT_ONCE))
def test_mutated_files_break_no_reader(store, tmp_path, first):
    found = {}
    for number in range(first, first + AT_ONCE):
        case, content = made(SEED, number)
        run(store, case, content, tmp_path)
        if case.problems:
            found[number] = case.problems

    assert found == {}
    raw = check(store).filter(check="grain of raw.rejects")
    assert raw["violations"].sum() == 0


@pytest.mark.machine
def test_the_command_says_what_it_did(tmp_path):
    command = [sys.executable, "-m", "tests.fuzz", "--files", "4", "--seed", "3", "--no-build"]
    done = subprocess.run(
        [*command, "--culprits", tmp_path / "culprits"], check=True, capture_output=True, text=True
    )

    assert "4 files" in done.stdout
    assert "0 files over 500 MB, 0 over 10 CPU s" in done.stdout
    (taken,) = tmp_path.iterdir()
    lines = taken.read_text().splitlines()
    assert taken.name == "fuzz-files-3.csv"
    assert lines[0] == "number,origin,cpu_s,peak_mib"
    assert len(lines) == 5


def test_seeds_give_different_files():
    assert {made(SEED, n)[1] for n in range(5)}.isdisjoint(made(SEED + 1, n)[1] for n in range(5))
