"""What several builds made of evidence that came bit by bit is what a full build makes of it."""

from tests.queries.conftest import built_together
from tests.queries.ledger_build.full_rebuild import assert_equals_full_build


@built_together(builds=3)
def test_the_clusters_of_all_rules_have_the_rows_of_a_full_build(cluster):
    """Their tests load them in up to three builds: full builds of each alone take minutes."""
    for _ in range(3):
        yield
    assert_equals_full_build(cluster)
