"""The ledger of random small worlds is that of the oracle, which knows the written rules alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.oracle.compare import compare
from tests.oracle.world import make

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("seed", range(1, 21))
def test_the_ledger_of_a_random_world_is_the_oracles_to_the_millisecond(
    seed: int, tmp_path: Path, empty_database: Path
) -> None:
    assert compare(make(seed), tmp_path / "world", empty_database) == []
