"""What tests of pages share: the recorded session."""

import pytest
from tests.recorded_session import CAPTURED, built


@pytest.fixture(scope="module")
def capture(empty_database, tmp_path_factory):
    """Give the recorded session: NVML, job events, accounting, Inspector logs of one part."""
    yield from built(empty_database, tmp_path_factory, *CAPTURED)
