"""A build places again only what a change concerns, and gives the holds of a full placement.

However long the GPUs of a node were held without a pause before.
"""

from unittest.mock import patch

from tests.queries.conftest import built_file, copy_of, each

from goodput_queries.ledger_build.placement import incremental, place


def assert_placed_as_in_a_full_build(store):
    with store.cursor() as cursor:
        cursor.execute("begin")
        placed = place.place(cursor)
        cursor.execute("rollback")
    for name, full in (
        ("int_claims", placed.claims),
        ("int_holds", placed.holds),
        ("int_hold_conflicts", placed.conflicts),
    ):
        found = store.read(f"from intermediate.{name}")
        assert sorted(found.rows(), key=str) == sorted(full.rows(), key=str), name


@built_file
def built_nodes(evidence):
    """Build three nodes with jobs: the first was held without a pause for ten hours."""
    evidence.node("never empty", 2)
    evidence.node("of three", 3)
    evidence.node("of two", 2, watched=36_000)
    for number in range(20):
        start = 1_800 * number
        evidence.job(str(number), start, start + 2_700, ["never empty"], 1)
    evidence.job("long", 35_200, None, ["never empty"], 1, "RUNNING",
                 observed_at=evidence.at(36_000))  # fmt: skip
    for job, start, end, node in (
        ("before", 0, 20, "of three"), ("beside", 10, 60, "of three"),
        ("much later", 70, 90, "of three"),
        ("first", 0, 50, "of two"), ("second", 10, 50, "of two"), ("elsewhere", 60, 90, "of two"),
    ):  # fmt: skip
        evidence.job(job, start, end, [node], 1)


nodes = copy_of("built_nodes")


# what it shows: what is reported then, job runs that are placed again, slots of some
@each({
    "a new job on a node that is never empty alone": (
        lambda c: c.job("new", 37_000, 38_000, ["never empty"], 1), {"new"}, {}),
    "a job that ends, and none that ran with it": (
        lambda c: c.job("long", 35_200, 37_000, ["never empty"], 1, observed_at=c.at(37_100)),
        {"long"}, {}),
    "a job reported late and those that began after it": (
        lambda c: c.job("late", 5, 40, ["of three"], 1), {"late", "beside", "much later"},
        {"before": 0, "late": 1, "beside": 2, "much later": 0}),
    "an earlier job that was assumed on the GPU that a later one names": (
        lambda c: c.hold("second", submit=10, node="of two", slurm_index=0),
        {"first", "second", "elsewhere"}, {"first": 1, "second": 0, "elsewhere": 0}),
})  # fmt: skip
def test_what_is_placed_again(nodes, report, again, slots):
    report(nodes)

    with patch.object(incremental, "claim", wraps=incremental.claim) as claim:
        nodes.store.build()

    assert_placed_as_in_a_full_build(nodes.store)
    assert {run.job[0] for run in claim.call_args.args[0]} == again
    found = nodes.store.read("select job_run_key, slurm_index from intermediate.int_holds")
    slot_of = {key.split("/")[1].split("@")[0]: index for key, index in found.rows()}
    assert slot_of.items() >= slots.items()
