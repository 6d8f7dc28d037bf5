"""Tables of pages: what is shown of a column, under which name and header."""

from __future__ import annotations

import io
from datetime import timedelta

import polars as pl
import pytest

from goodput_app.dashboard.components import downloads, tables
from goodput_app.dashboard.components.rows import fields


def test_a_table_without_any_price_says_so() -> None:
    frame = pl.DataFrame(
        {"cost": [None, None], "gpu_ms": [60_000, 120_000], "ettr_ratio": [0.5, None]},
        schema_overrides={"cost": pl.Float64},
    )
    shown, config = tables.shaped(frame, {"cost": "Cost", "gpu_ms": "Time", "ettr_ratio": "ETTR"})
    assert shown["cost"].to_list() == ["no price", "no price"]
    assert shown["gpu_min"].to_list() == [1.0, 2.0]
    assert shown["ettr_percent"].to_list() == [50.0, None]
    assert config["gpu_min"]["label"] == "Time (GPU-min)"


def test_accounts_without_a_budget_have_none_rather_than_no_price() -> None:
    frame = pl.DataFrame({"budget_cost": [None]}, schema={"budget_cost": pl.Float64})
    shown, config = tables.shaped(frame, {"budget_cost": "Monthly budget"})
    assert shown["budget_cost"].to_list() == [None]
    assert config["budget_cost"]["help"].endswith(" -: no budget")


def test_a_column_in_another_unit_is_called_after_it() -> None:
    frame = pl.DataFrame(
        {
            "gpu_ms": [3_600_000],
            "held_ms": [7_200_000],
            "booked_gpu_ms": [60_000],
            "sm_clock_hz": [1_980_000_000],
        }
    )
    shown, config = tables.shaped(frame, {name: name for name in frame.columns})
    assert shown.row(0, named=True) == {
        "gpu_h": 1.0,
        "held_gpu_h": 2.0,
        "booked_gpu_min": 1.0,
        "sm_clock_mhz": 1980.0,
    }
    assert list(config) == shown.columns


@pytest.mark.parametrize(
    ("seconds", "cell", "header"),
    [
        ([0.25, 599.0], [0.25, 599.0], "Length (s)"),
        ([0.25, 226_350.4], [timedelta(0), timedelta(seconds=226_350)], "Length (h:m:s)"),
        ([None, None], [None, None], "Length (s)"),
    ],
)
def test_long_times_read_as_on_a_clock(
    seconds: list[float | None], cell: list[object], header: str
) -> None:
    frame = pl.DataFrame({"gap_s": seconds}, schema={"gap_s": pl.Float64})
    shown, config = tables.shaped(frame, {"gap_s": "Length"})
    assert shown["gap_s"].to_list() == cell
    assert config["gap_s"]["label"] == header


def test_columns_that_the_side_panel_has_are_hidden_in_the_table() -> None:
    frame = pl.DataFrame({"node": ["a"], "gpu_ms": [3_600_000], "cost": [1.5]})
    names = {"node": "Node", "gpu_ms": "GPU time", "cost": "Cost"}
    _, config = tables.shaped(frame, names)

    arranged = tables.arranged(config, names, {"node": 80}, more=("gpu_ms",))

    assert [name for name, shown_as in arranged.items() if shown_as.get("hidden")] == ["gpu_h"]
    assert arranged["node"]["width"] == 80


def test_rows_have_room_for_the_texts_that_are_seen_at_first() -> None:
    rows = [*["a few words"] * 3, "a-word-that-no-line-has-room-for" * 3]
    shown = pl.DataFrame({"fix": rows})
    heights = [tables.heights(shown, most, {"fix": 100})["row_height"] for most in (3, 4)]
    assert heights[0] == tables.WRAPPED_ROW_PX
    assert heights[1] > heights[0]


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("gpu_ms", 5_400_000, "1.5 GPU-h"),
        ("wasted_cost", 1234.5, "$1,234.50"),
        ("ettr_ratio", 0.965, "96.5 %"),
        ("gap_s", 270.0, "4m 30s"),
        ("own_gpu_s", 3600.0, "1.0 GPU-h"),
        ("sm_clock_hz", 1_980_000_000, "1,980 MHz"),
        ("tokens_per_s", 1234.5, "1,234"),
        ("restarts", 1200, "1,200"),
        ("team", "nlp", "nlp"),
    ],
)
def test_a_column_left_out_of_a_table_reads_with_its_unit(
    name: str, value: object, text: str
) -> None:
    assert fields.text(name, value) == text


def test_a_download_has_the_rows_as_they_are_shown() -> None:
    frame = pl.DataFrame({"node": ["a", None], "gpu_h": [1.5, 2.0]})

    written = io.BytesIO(downloads.as_parquet(frame))

    assert pl.read_parquet(written).equals(frame)
