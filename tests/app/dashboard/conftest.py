"""What tests of pages share: the recorded session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.recorded_session import built

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from goodput_queries.storage.store import LocalStore


@pytest.fixture(scope="module")
def capture(empty_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStore]:
    """Give the recorded session: NVML, job events, accounting, Inspector logs of one part."""
    parts = "sacct.txt", "nvml.jsonl.gz", "job_events.jsonl.gz", "nccl_inspector/main"
    yield from built(empty_database, tmp_path_factory, *parts)
