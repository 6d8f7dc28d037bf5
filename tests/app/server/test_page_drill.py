"""Each rule that can page does, with a real Prometheus and Slurm, and its page ends again."""

import os

import pytest
from tests.app.server.drill import DRILLS, NOT_DRILLED, drilled, measured, paging
from tests.ingest.sources.slurm.slurm_lab import MISSING

of_slurm = [
    pytest.mark.slow,
    pytest.mark.machine,
    pytest.mark.skipif(bool(MISSING), reason=f"Slurm is not installed: {', '.join(MISSING)}"),
    pytest.mark.skipif(os.geteuid() != 0, reason="Slurm's daemons need root"),
    pytest.mark.xdist_group("slurm"),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with drilled(tmp_path_factory.mktemp("drill")) as found:
        yield found


def test_every_rule_that_can_page_is_drilled_or_says_why_not():
    assert {one.__name__ for one in DRILLS} | NOT_DRILLED.keys() == paging()


@pytest.mark.parametrize(
    "drill", [pytest.param(one, id=one.__name__, marks=of_slurm) for one in DRILLS]
)
def test_a_page_comes_with_its_evidence_and_ends_with_evidence_against_it(site, drill):
    """In their order: how soon is measured by `python -m tests.app.server.drill`."""
    assert len(list(measured(site, drill))) == 2
