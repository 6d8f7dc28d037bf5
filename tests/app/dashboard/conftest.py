"""What tests of pages share: the recorded session."""

import pytest
from tests.recorded_session import built


@pytest.fixture(scope="module")
def capture(empty_database, tmp_path_factory):
    """Give the recorded session: NVML, job events, accounting, Inspector logs of one part."""
    parts = "sacct.txt", "nvml.jsonl.gz", "job_events.jsonl.gz", "nccl_inspector/main"
    yield from built(empty_database, tmp_path_factory, *parts)
