"""The ledger in nine groups: every category is in one, nothing is lost, one group can be open."""

import polars as pl
import pytest

from goodput_app.dashboard import theme
from goodput_app.dashboard.data.ledger_groups import grouped, of_categories, over_time
from goodput_queries.catalog import models

KNOWN = pl.read_csv(models.reference_files()["ledger_groups"])
CATEGORIES = pl.read_csv(models.reference_files()["gpu_second_categories"])


def ledger(**changes):
    """Return a ledger in which the n-th category has n seconds, but for those named."""
    return CATEGORIES.with_columns(
        pl.Series(
            "gpu_ms", [changes.get(c, 1000 * n) for n, c in enumerate(CATEGORIES["category"])]
        ),
        pl.lit(1.0).alias("cost"),
        pl.col("kind").replace("goodput_optional", "badput"),
    )


def test_every_category_is_in_one_of_nine_groups_that_the_stack_knows():
    assert sorted(KNOWN["category"]) == sorted(CATEGORIES["category"])
    names = KNOWN["ledger_group"].unique().to_list()
    assert len(names) == 9
    assert set(KNOWN["colour"]) <= set(theme.STYLES)


def test_the_groups_add_up_to_the_ledger_in_the_order_of_stacks():
    found = grouped(ledger(), KNOWN)

    assert found["category"][:2].to_list() == ["useful", "slowdowns"]
    assert found["gpu_ms"].sum() == ledger()["gpu_ms"].sum()
    assert found["cost"].sum() == pytest.approx(ledger()["cost"].sum())


def test_a_group_has_its_largest_category_and_what_was_wasted():
    rows = grouped(ledger(idle_no_demand=10**9), KNOWN)

    free = rows.filter(category="unallocated").row(0, named=True)
    assert free["largest"] == "idle_no_demand"
    assert free["wasted_ms"] < free["gpu_ms"], "free of unknown state is not wasted"
    assert rows.filter(category="useful")["wasted_ms"].item() == 0


def test_evaluation_that_counts_is_useful():
    counted = ledger().with_columns(
        pl.when(pl.col("category") == "other_declared")
        .then(pl.lit("goodput"))
        .otherwise("kind")
        .alias("kind")
    )

    assert of_categories(counted, KNOWN)["other_declared"] == "useful"
    assert of_categories(ledger(), KNOWN)["other_declared"] == "declared"


def test_over_time_the_groups_add_up_in_each_bucket():
    frame = pl.DataFrame({
        "bucket_at": [1, 1, 1, 2],
        "category": ["lost_work", "fault_stall", "productive", "lost_work"],
        "gpu_ms": [10, 20, 30, 40],
    })  # fmt: skip
    found = over_time(frame, of_categories(ledger(), KNOWN))

    assert sorted(found.rows()) == [(1, "failures", 30), (1, "useful", 30), (2, "failures", 40)]
