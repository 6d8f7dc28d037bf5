"""A value of a reading that was rejected voids itself, and is counted by metric."""

import pytest
from tests.queries.conftest import built_together
from tests.queries.rules.gpus.test_shares_of_one_device import HOUR, label, loaded

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions


@pytest.mark.parametrize(
    ("flagged", "category"),
    [("power_w", "busy_unclassified"), ("gpm", "unknown"), (None, "unknown")],
    ids=["another value", "its shares", "an earlier version does not say"],
)
@built_together
def test_a_flag_of_nvml_voids_the_reading_where_its_shares_are_incomplete(
    cluster, flagged, category
):
    gpu = loaded(cluster, [label("a", 0, HOUR)], until=0)
    cluster.load("gpu_samples", [
        {"gpu_uuid": gpu, "gpu_instance": "", "ts": cluster.at(second), "gpu_busy_ratio": 0.9,
         "is_flagged": True, "flagged_metrics": flagged}
        for second in range(60, HOUR + 1, 60)
    ], "nvml")  # fmt: skip

    yield

    assert max(cluster.gpu_s().items(), key=lambda one: one[1])[0] == category


def test_blank_values_are_counted_by_metric(store, tmp_path):
    labels = 'gpu="0",UUID="GPU-11111111-2222-3333-4444-555555555555",Hostname="w1"'
    values = {"DCGM_FI_DEV_GPU_UTIL": 90, "DCGM_FI_PROF_PCIE_TX_BYTES": 9223372036854775792}
    lines = [
        f"{name}{{{labels}}} {value} {1795183200000 + 30_000 * n}\n"
        for n in range(61)
        for name, value in values.items()
    ]
    (tmp_path / "scrape.prom").write_text("".join(lines))
    ingest(store, "auto", [tmp_path], ReadOptions("lab"))
    store.build()

    kind = "select what, n from marts.data_quality where kind = 'blank values'"
    assert store.read(kind).rows() == [("pcie_tx_bytes_per_s blank in 61 of 61 readings", 61)]
