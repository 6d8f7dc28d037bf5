"""Tables and charts of pages: names, units, and what dragging over a time axis asks for."""

from datetime import UTC, datetime, timedelta

import plotly.graph_objects as go
import polars as pl
from tests.tables import each, gives

from goodput_app.dashboard.components import charts, places, tables
from goodput_app.text import glossary


def test_a_table_says_what_has_no_price_its_units_and_files_without_folders():
    frame = pl.DataFrame({
        "cost": [None, None], "budget_cost": [None, None], "gpu_ms": [60_000, 120_000],
        "ettr_ratio": [0.5, None],
    }, schema_overrides=dict.fromkeys(("cost", "budget_cost"), pl.Float64))  # fmt: skip
    names = dict(zip(frame.columns, ("Cost", "Monthly budget", "Time", "ETTR"), strict=True))
    shown, config = tables.shaped(frame, names)
    assert shown["cost"].to_list() == ["no price", "no price"]
    assert shown["budget_cost"].to_list() == [None, None]
    assert config["budget_cost"]["help"].endswith(" -: no budget")
    assert shown["gpu_min"].to_list() == [1.0, 2.0]
    assert shown["ettr_percent"].to_list() == [50.0, None]
    assert config["gpu_min"]["label"] == "Time (GPU-min)"
    frame = pl.DataFrame({
        "gpu_ms": [3_600_000], "held_ms": [7_200_000], "booked_gpu_ms": [72_000],
        "sm_clock_hz": [1_980_000_000],
    })  # fmt: skip
    shown, config = tables.shaped(frame, {name: name for name in frame.columns})
    assert shown.rows() == [(1, 2, 0.02, 1980)], "one unit in all columns"
    assert shown.columns == ["gpu_h", "held_gpu_h", "booked_gpu_h", "sm_clock_mhz"]
    assert config["booked_gpu_h"]["type_config"]["format"] == "%,.3f"
    assert list(config) == shown.columns
    frame = pl.DataFrame({"origin": ["/srv/prices/rates.csv", "page", None]})
    assert tables.without_folders(frame)["origin"].to_list() == ["rates.csv", "page", None]


@each(
    ([0.25, 599.0], [0.25, 599.0], "Length (s)"),
    ([0.25, 226_350.4], [timedelta(0), timedelta(seconds=226_350)], "Length (h:m:s)"),
    ([86_400.0, 8_688_000.0], [1.0, 8_688_000 / 86_400], "Length (days)"),
    ([330.0, 1_533_003.0], [330 / 3600, 1_533_003 / 3600], "Length (h)"),
    ([None, None], [None, None], "Length (s)"),
)
def test_long_times_read_as_on_a_clock(seconds, cell, header):
    frame = pl.DataFrame({"gap_s": seconds}, schema={"gap_s": pl.Float64})
    shown, config = tables.shaped(frame, {"gap_s": "Length"})
    assert shown.to_series().to_list() == cell
    assert config[shown.columns[0]]["label"] == header
    bounds = pl.DataFrame({"mtbf_s": [137_000.0], "mtbf_low_s": [69_600.0], "mtbf_high_s": [3.2e6]})
    shown, _ = tables.shaped(bounds, dict.fromkeys(bounds.columns, "Between"))
    assert shown.columns == ["mtbf_days", "mtbf_low_days", "mtbf_high_days"]


test_a_fact_reads_in_the_unit_of_its_column = gives(
    places.fact,
    ("power_w", 3706.2, "3,706 W"), ("rx_bytes_per_s", 25e9, "25.0 GB/s"),
    ("outage_s", 8040.0, "2h 14m"), ("idle_ms", 7_200_000, "2.0 GPU-h"),
    ("wasted_cost", 1.5, "$1.50"), ("cost_per_allocated_gpu_h", 2.386, "$2.39"),
    ("down_ratio", 0.25, "25.0 %"), ("tokens_per_s", 17.28, "17.28"), ("events", 1200, "1,200"),
    ("start_at", datetime(2026, 11, 20, 12, tzinfo=UTC), "2026-11-20 12:00:00 UTC"),
    ("nodes", ["a"], "['a']"),
)  # fmt: skip

test_a_marked_range_is_turned_back_to_utc_and_a_click_marks_none = gives(
    lambda *boxes: charts.marked_range(boxes, timedelta(hours=1)),
    (
        {"x": ["2026-11-20 13:30:00.25", "2026-11-20 13:00"], "y": [0, 1]},
        tuple(map(datetime.fromisoformat, ("2026-11-20 12:00", "2026-11-20 12:30:00.250"))),
    ),
    (None,),
    ({"x": ["2026-11-20", "2026-11-20"]}, None),
)


def test_a_legend_is_explained_by_the_glossary_and_the_categories():
    names = ("Lost work 3.7 %", "Idle, no demand (4)", "Slowdowns", "node-7")
    figure = go.Figure([go.Bar(x=[1], y=["a"], name=name) for name in names])
    found = charts.definitions(figure)
    assert list(found) == ["Lost work", "Idle, no demand", "Slowdowns"]
    assert found["Lost work"] == glossary.meaning("Lost work")
    assert found["Slowdowns"] == glossary.meaning("Slowdowns")
    assert charts.definitions(figure.update_layout(showlegend=False)) == {}


@each(
    ([0.25, None, 0.5], "localized"),  # three decimals at most
    ([1.5, 0.25], "%,.2f"),
    ([43.2, 0.0], "%,.1f"),
    ([10_013.034, 0.47], "%,.1f"),
    ([float("nan"), 4096.0, 12.0], "%,.0f"),
    ([None], "localized"),
)
def test_numbers_of_a_column_have_one_number_of_decimals(numbers, shown):
    frame = pl.DataFrame({"score": numbers}, schema={"score": pl.Float64})
    assert tables.shaped(frame, {"score": "Score"})[1]["score"]["type_config"]["format"] == shown


@each(([29.3057, 157.6866], "%,.2f"), ([29.3057, 0.6659], "%,.4f"), ([None], "%,.2f"))
def test_prices_have_more_decimals_than_amounts_where_one_is_small(prices, shown):
    column = tables.price_column("Price", pl.Series(prices, dtype=pl.Float64))
    assert column["type_config"]["format"] == shown


@each((["short", None], None), (["two words here " * 3], 62), (["a word " * 18], 80))
def test_rows_are_as_high_as_others_where_each_text_has_room_in_one_line(texts, row_px):
    frame = pl.DataFrame({"advice": texts})
    assert tables.heights(frame, 8, {"advice": 200}).get("row_height") == row_px
