"""The statement: worked example 3 of the accounting rules, to the cent, and its edge."""

from datetime import date
from decimal import Decimal
from itertools import pairwise

import pytest

from goodput_billing.statement.amounts.charges import Policy
from goodput_billing.statement.amounts.rows import in_cents
from goodput_billing.statement.closing import computed
from goodput_billing.statement.days import Day

START_MS = 1_800_000_000_000
HOUR_S = 3_600
DAY = Day(date(2027, 1, 15), "UTC", START_MS, START_MS + 24 * HOUR_S * 1000)


def counter(evidence, gpu, kwh_by_second):
    """Load a GPU's energy counter, which rises evenly between these moments."""
    moments = sorted(kwh_by_second)
    readings = []
    for begin, end in pairwise(moments):
        for second in range(begin, end, 600):
            share = (second - begin) / (end - begin)
            kwh = kwh_by_second[begin] + share * (kwh_by_second[end] - kwh_by_second[begin])
            readings.append((second, kwh))
    readings.append((moments[-1], kwh_by_second[moments[-1]]))
    evidence.add(
        "gpu_samples", *({"ts": second, "energy_j": 1e9 + kwh * 3.6e6} for second, kwh in readings),
        source="dcgm", gpu_uuid=f"c/{gpu}", gpu_instance="", engine_active_ratio=0.5,
        is_flagged=False,
    )  # fmt: skip


def load_node(evidence):
    """Load a node of 8 H100, the seventh of which has a 3g instance, with its prices."""
    evidence.node("n", 8)
    evidence.add(
        "gpu_instances", gpu_uuid="n#6", gpu_instance="3g.40gb.0", profile="3g.40gb",
        compute_slices=3, slurm_index=6,
    )  # fmt: skip
    evidence.watched(24 * HOUR_S)
    evidence.add("rates", gpu_model="H100", price_per_gpu_h=Decimal(2), cluster=None)
    evidence.add(
        "tariffs", zone="UTC", from_hour=0, to_hour=24, price_per_kwh=Decimal("0.15"),
        pue=Decimal("1.4"), server_ratio=Decimal(1), cluster=None,
    )  # fmt: skip


@pytest.fixture(scope="module")
def example_3(shared_evidence):
    """Load team A on GPUs 0-5 for 12 h and of team B on the instance for 24 h."""
    node = shared_evidence
    load_node(node)
    node.job("1", 0, 12 * HOUR_S, ["n"], 6, account="A", user_name="ann", gpu_type="h100")
    node.job("2", 0, 24 * HOUR_S, ["n"], 1, account="B", user_name="bob", gpu_type="3g.40gb")
    for gpu in range(6):
        counter(node, f"n#{gpu}", {0: 0, 12 * HOUR_S: 8, 24 * HOUR_S: 8})
    counter(node, "n#6", {0: 0, 24 * HOUR_S: 7})
    counter(node, "n#7", {0: 0, 24 * HOUR_S: 5})
    node.store.build()
    return node.store


def sums(frame, column):
    """Return a column by account and line."""
    found = {}
    for row in frame.iter_rows(named=True):
        key = row["team"] or row["line"]
        if row[column] is not None:
            found[key] = found.get(key, 0) + row[column]
    return found


def test_example_3_shares_idle_time_in_proportion_to_direct_cost(example_3):
    exact = computed(example_3, DAY, Policy("proportional"))

    found = {
        name: sums(exact, name) for name in ("direct_cost", "idle_share_cost", "electricity_cost")
    }
    # the ledger counts whole milliseconds: 3/7 of a day is short of a seventh of one
    near = {
        "direct_cost": {"A": 144, "B": 20.571429, "idle": 219.428571},
        "idle_share_cost": {"A": 192, "B": 27.428571, "idle": -219.428571},
        "electricity_cost": {"A": 11.73375, "B": 0.86625, "idle": 0},
    }
    assert {name: {k: float(v) for k, v in column.items()} for name, column in found.items()} == {
        name: pytest.approx(column, abs=2e-6) for name, column in near.items()
    }


def test_example_3_to_the_cent(example_3):
    billed = in_cents(computed(example_3, DAY, Policy("proportional")))

    assert sums(billed, "total_cost") == {
        "A": Decimal("347.73"),
        "B": Decimal("48.87"),
        "idle": Decimal("0.00"),
    }
    assert sum(billed["total_cost"]) == Decimal("396.60")
    assert sum(billed["energy_mj"]) == 60 * 3_600_000_000
    assert sum(billed["gpu_ms"]) == 192 * 3_600_000


def test_what_nobody_used_nobody_carries(evidence):
    """The edge of example 3: all weights are 0, and the idle cost must not vanish."""
    node = evidence
    load_node(node)
    node.job("cpu-only", 0, 1, ["n"], 0)  # without a scheduler the activity would be somebody's
    for gpu in range(8):
        counter(node, f"n#{gpu}", {0: 0, 24 * HOUR_S: 7.5})
    node.store.build()

    for idle in ("proportional", "uniform", "by_quota"):
        billed = in_cents(computed(node.store, DAY, Policy(idle)))
        assert set(billed["line"]) == {"idle"}
        assert sum(billed["total_cost"]) == Decimal("396.60")
