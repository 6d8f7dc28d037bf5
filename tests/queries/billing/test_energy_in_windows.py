"""Energy of a window that cuts hours: it belongs to the time there is evidence of."""

import pytest
from tests.recorded_session import built, extent_ms

from goodput_queries.scope import Scope


@pytest.fixture(scope="module")
def capture(empty_database, tmp_path_factory):
    """Give six minutes of four GPUs, in the middle of an hour."""
    yield from built(empty_database, tmp_path_factory, "sacct.txt", "nvml.jsonl.gz")


def energy_mj(store, from_ms=None, to_ms=None):
    scope = Scope(from_ms=from_ms, to_ms=to_ms)
    return store.read("select sum(energy_mj)::bigint from marts.gpu_models", scope=scope).item()


def test_a_window_of_all_evidence_has_all_energy(capture):
    first, last = extent_ms(capture)

    assert energy_mj(capture) > 0
    assert energy_mj(capture, first, last) == energy_mj(capture)
    assert energy_mj(capture, first - 600_000, last + 600_000) == energy_mj(capture)


def test_energies_of_windows_that_follow_each_other_add_up(capture):
    first, last = extent_ms(capture)
    middle = (first + last) // 2

    parts = energy_mj(capture, first, middle), energy_mj(capture, middle, last)

    assert sum(parts) == energy_mj(capture)
    assert min(parts) > 0
