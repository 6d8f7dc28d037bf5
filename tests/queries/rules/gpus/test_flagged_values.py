"""A value of a reading that was rejected voids itself, and is counted by metric."""

import pytest
from tests.queries.conftest import built_together
from tests.queries.rules.gpus.test_shares_of_one_device import HOUR, label, loaded

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries.ledger import ledger


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
    more = {"is_flagged": True, "flagged_metrics": flagged}
    cluster.readings(gpu, range(60, HOUR + 1, 60), "nvml", gpu_busy_ratio=0.9, **more)
    yield
    assert max(cluster.gpu_s().items(), key=lambda one: one[1])[0] == category


BLANK = "140737488355328.0"
NAMES = {
    "busy": "DCGM_FI_DEV_GPU_UTIL", "engine": "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    "sm": "DCGM_FI_PROF_SM_ACTIVE", "tensor": "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
    "dram": "DCGM_FI_PROF_DRAM_ACTIVE", "pcie": "DCGM_FI_PROF_PCIE_TX_BYTES",
    "power": "DCGM_FI_DEV_POWER_USAGE", "clock": "DCGM_FI_DEV_SM_CLOCK",
}  # fmt: skip
NO_ACTIVITY = {"engine": 0, "tensor": 0, "dram": 0}
# what it shows: what each scrape has of a GPU that no job holds, and its category
SCRAPES = {
    "a share is missing, utilisation counts": (
        {"busy": 90, "sm": BLANK, **NO_ACTIVITY}, "busy_unclassified",
    ),
    "the same where the first share is missing": (
        {"busy": 90, "sm": 0, **NO_ACTIVITY, "engine": BLANK}, "busy_unclassified",
    ),
    "utilisation of 0 beside a missing share": (
        {"busy": 0, "sm": BLANK, **NO_ACTIVITY}, "idle_no_demand",
    ),
    "shares show activity beside a missing one": (
        {"busy": 0, "sm": BLANK, "engine": 0.5}, "busy_unclassified",
    ),
    "shares that show none beside a missing one prove nothing": (
        {"sm": BLANK, **NO_ACTIVITY}, "free_unknown",
    ),
    "no share but utilisation": ({"busy": 90, "sm": BLANK, "engine": BLANK}, "busy_unclassified"),
    "no utilisation but a share": ({"busy": BLANK, "sm": 0.4}, "busy_unclassified"),
    "nothing": ({"busy": BLANK, "sm": BLANK}, "free_unknown"),
    "a share that the exporter does not have": ({"busy": 90, **NO_ACTIVITY}, "idle_no_demand"),
    **{
        f"{name}: {value}": ({"busy": 90, name: value}, "busy_unclassified")
        for name in ("pcie", "power", "clock", "dram")
        for value in ("9223372036854775792", "2147483632", "NaN", "+Inf", "-1", "1e30")
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def scraped(new_store, tmp_path_factory):
    """Give the category of the GPU of each scrape, by what the scrape shows."""
    lines = [
        f'{NAMES[name]}{{gpu="0",UUID="GPU-{number:08}",Hostname="w{number}"}} {value} {ms}\n'
        for ms in range(1795183200000, 1795183800001, 30_000)
        for number, (values, _) in enumerate(SCRAPES.values())
        for name, value in values.items()
    ]
    path = tmp_path_factory.mktemp("scrapes") / "scrape.prom"
    path.write_text("".join(lines))
    store = new_store()
    ingest(store, "auto", [path], ReadOptions("lab"))
    store.build()
    found = dict(ledger(store, by=["gpu", "category"]).select("gpu", "category").rows())
    assert len(found) == len(SCRAPES)
    blank = "select what, n from marts.data_quality where kind = 'blank values' order by what"
    yield {
        **{case: found[f"GPU-{number:08}"] for number, case in enumerate(SCRAPES)},
        "blank": store.read(blank).rows(),
    }
    store.close()


@pytest.mark.parametrize("case", SCRAPES)
def test_a_value_that_is_not_there_voids_itself_alone(scraped, case):
    assert scraped[case] == SCRAPES[case][1]


def test_blank_values_are_counted_by_metric(scraped):
    ((what, n),) = scraped["blank"]
    assert "; pcie_tx_bytes_per_s blank in 126 of 126 readings; power_w blank in 126 of" in what
    assert n == 5 * 126 + 2 * 42
