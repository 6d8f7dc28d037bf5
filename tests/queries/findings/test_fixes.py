"""The list of what to do first: what is put on a week."""

import pytest
from tests.queries.conftest import built_together
from tests.queries.findings import given
from tests.queries.findings.conftest import rows_together

HOUR = 3600
WEEK_H = 168


def failing(*ends):
    """Return a node whose jobs end with it, an hour and a half of each without a save."""
    world = [{"node": "a", "gpus": 4}, {"watched": 8 * HOUR}]
    for number, end in enumerate(ends, 1):
        job = {"job": str(number), "start": end - 5400, "end": end, "state": "NODE_FAIL"}
        steps = {"steps": str(number), "start": end - 5400, "to": end - 60}
        down = {"state": "down", "node": "a", "start": end, "end": end + 60}
        world += [job, steps, down]
    return world


# what it shows: what happens in eight hours, the fix, whether its GPU time is put on a week
WEEKS = {
    "one incident": (failing(7200), "drain_node", False),
    "two incidents": (failing(7200, 14400), "drain_node", True),
    "idle GPUs that are still held": (
        [
            {"node": "a", "gpus": 4}, {"watched": 8 * HOUR}, {"job": "1", "end": 8 * HOUR},
            {"readings": "a/0-3", "to": 8 * HOUR, "use": "idle"},
        ],
        "release_gpus", True,
    ),
    "idle GPUs that one job held": (
        [
            {"node": "a", "gpus": 4}, {"watched": 8 * HOUR}, {"job": "1", "end": HOUR},
            {"readings": "a/0-3", "to": HOUR, "use": "idle"},
        ],
        "release_gpus", False,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("world", "fix", "is_of_a_week"), WEEKS.values(), ids=WEEKS)
@built_together
def test_what_happened_once_is_not_put_on_a_week(cluster, world, fix, is_of_a_week):
    given.load(cluster, world)
    yield
    (found,) = [row for row in rows_together(cluster, "marts.fixes") if row["fix"] == fix]
    assert found["back_ms"] > 0
    week_ms = found["back_ms"] * WEEK_H // 8 if is_of_a_week else None
    assert (found["back_week_ms"], found["is_recurrent"]) == (week_ms, is_of_a_week)
