"""What two builds made of the clusters of all marts is what a full build makes of them."""

from tests.queries.conftest import built_together
from tests.queries.ledger_build.full_rebuild import assert_equals_full_build


@built_together(builds=2)
def test_the_clusters_of_all_marts_have_the_rows_of_a_full_build(cluster):
    yield
    yield
    assert_equals_full_build(cluster)
