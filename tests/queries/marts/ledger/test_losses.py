"""Causes of losses."""

from tests.queries.conftest import built_together


@built_together
def test_the_phase_that_lost_most_reports_the_cause_not_the_longest_in_one_hour(cluster):
    """Initialisation takes 100 s of one hour, compilation 70 s of that and 70 s of the next."""
    cluster.watched(4000)
    cluster.job_on_a_node("1", 3420, 4000, 1)
    cluster.events(
        "1",
        [
            {"t": 3420, "event": "job.start"},
            {"t": 3520, "event": "phase", "phase": "init", "dur_s": 100.0},
            {"t": 3670, "event": "phase", "phase": "compile", "dur_s": 140.0},
            {"t": 3770, "event": "step", "step": 1, "dur_s": 100.0},
            {"t": 4000, "event": "job.end"},
        ],
    )
    yield
    by_hour = cluster.read(
        f"""select phase, hour_ms, sum(gpu_ms)::bigint as ms from marts.ledger_pieces
        where category = 'startup' and cluster = '{cluster.name}' group by all order by ms desc"""
    )
    assert by_hour["phase"][0] == "init", "the longest in one hour"
    cause = cluster.read("select cause from marts.losses where category = 'startup'")
    assert cause.item() == "Compilation (first step)"
