"""The ledger of random small worlds is that of the oracle, which knows the written rules alone."""

import pytest
from tests.oracle.compare import compare
from tests.oracle.world import make

# a few of every size, and those that once found a rule of the product or of the oracle wrong
SEEDS = [1, 2, 3, 184, 198, 501, 506, 507, 523, 1029, 1145]


@pytest.fixture(scope="module")
def differences(tmp_path_factory, empty_database):
    """Give the cells that differ, by seed: the worlds are clusters of one database."""
    worlds = [make(seed) for seed in SEEDS]
    return compare(worlds, tmp_path_factory.mktemp("worlds"), empty_database)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_ledger_of_a_random_world_is_the_oracles_to_the_millisecond(differences, seed):
    assert differences[seed] == []


@pytest.mark.machine
def test_the_ledger_is_the_oracles_however_evidence_arrives(tmp_path, empty_database):
    """Files in any order, events and readings in shuffled halves, a build after every other file.

    `python -m tests.oracle --in-parts` builds after each.
    """
    assert compare([make(1029)], tmp_path, empty_database, build_every=2) == {1029: []}
