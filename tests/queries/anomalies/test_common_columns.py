"""Marts of findings have the columns by which one view can join them."""

import polars as pl
import pytest

MARTS = (
    "gang_gaps", "periodic_gaps", "low_use", "silent_gpus", "standing_counters", "peer_outliers",
    "sudden_drops", "host_causes", "stalled_runs",
)  # fmt: skip
TEXTS = ("rule", "cluster", "node", "gpu_uuid", "run_key", "team", "confidence", "evidence")
COLUMNS = {
    **dict.fromkeys(TEXTS, pl.String), **dict.fromkeys(("start_at", "end_at"), pl.Datetime("us")),
    "gpu_ms": pl.Int64, "cost": pl.Float64, "score": pl.Float64,
}  # fmt: skip


@pytest.mark.parametrize("mart", MARTS)
def test_each_has_rule_place_owner_time_cost_and_evidence(evidence, mart):
    found = evidence.store.read(f"select * from marts.{mart}")

    assert {name: found.schema.get(name) for name in COLUMNS} == COLUMNS
