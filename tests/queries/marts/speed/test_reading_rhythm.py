"""The step rhythm from SM activity: steps of several readings are found, shorter ones unknown."""

import random

from tests.queries.conftest import built_together

from goodput_queries.scope import Scope

LENGTH_S, EVERY_S = 1_200, 1.0


def activity(step_s):
    """Return activity as a mean over each reading: 80 % of a step computes, then it waits."""
    chance, found, at = random.Random(3), [], EVERY_S  # noqa: S311 -- noise, no secret
    while at < LENGTH_S:
        parts = [((at - EVERY_S * k / 50) % step_s) / step_s for k in range(50)]
        busy = sum(0.9 if part < 0.8 else 0.1 for part in parts) / 50
        found.append((at, busy + chance.gauss(0, 0.03)))
        at += EVERY_S
    return found


@built_together
def test_only_steps_of_several_readings_have_a_rhythm(cluster):
    """Of three runs: steps of seven seconds, of a third of a second, and no steps."""
    chance = random.Random(4)  # noqa: S311 -- noise, no secret
    noise = [(at, abs(chance.gauss(0.4, 0.15))) for at, _ in activity(7)]
    for node, (job, readings) in zip(
        "abc", {"slow": activity(7.3), "fast": activity(0.31), "none": noise}.items(), strict=True
    ):
        cluster.node(node, 1)
        cluster.job(job, 0, LENGTH_S, [node], 1)
        cluster.add(
            "gpu_samples", *(
                {"ts": at, "sm_active_ratio": ratio, "engine_active_ratio": ratio}
                for at, ratio in readings
            ),
            gpu_uuid=cluster.gpu(f"{node}#0"), gpu_instance="",
        )  # fmt: skip
    yield
    found = {}
    for run in ("slow", "fast", "none"):
        found[run] = cluster.read(
            "select period_ms, error_ms, confidence, reason from marts.reading_rhythm",
            scope=Scope(run=f"{cluster.name}/{run}"),
        ).row(0)

    period_ms, error_ms, confidence, _ = found["slow"]
    assert abs(period_ms - 7_300) <= error_ms == 500
    assert confidence == "Likely"
    assert found["fast"][::3] == (
        None, "activity does not swing: steps may be shorter than readings"
    )  # fmt: skip
    assert found["none"][::3] == (None, "activity does not repeat itself")
