"""A few cases of `make fuzz` and a few kills: what breaks is seen before a long run of them."""

import pytest
from tests.fuzz import kills, kills_of_servers
from tests.fuzz.worker import made, run

from goodput_queries.check import check

SEED, FILES, AT_ONCE = 20, 80, 40


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


@pytest.mark.slow
@pytest.mark.parametrize("module", [kills, kills_of_servers], ids=lambda one: one.__name__)
def test_commands_that_are_killed_and_repeated_lose_and_double_nothing(module):
    assert module.main(["--kills", "4"]) == 0
