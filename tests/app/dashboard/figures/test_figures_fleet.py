"""Charts of the fleet: where cells stand, what they show, and what they weigh."""

from datetime import datetime, timedelta

import numpy as np
import polars as pl
import pytest
from tests.tables import each

from goodput_app.dashboard import theme
from goodput_app.dashboard.components.fleet import fleet_now, fleet_parts
from goodput_app.dashboard.data import fleet
from goodput_app.dashboard.figures.fleet import cell_colours, rack_grid, rows_over_time

BEGIN = datetime(2026, 11, 20, 12)  # noqa: DTZ001 -- naive UTC, as the database has it
HOUR_MS = 3_600_000
WINDOW = BEGIN, BEGIN + timedelta(hours=4)
HOSTILE = "<b>r</b> %{x} $x$"
POWER = cell_colours.Metric("Power", "W")
LIMIT_BYTES = 1_000_000
NO_MARKS = fleet_now.marks(None)


def states(gpus, *, nodes_of_rack=16, **columns):
    """Return a made-up marts.gpu_states of nodes of eight GPUs, in racks."""
    rows = []
    for gpu in range(gpus):
        node, rack = gpu // 8, gpu // 8 // nodes_of_rack
        row = {
            "cluster": "c", "rack": f"r{rack:03}", "node": f"n{node:05}", "gpu_uuid": f"GPU-{gpu}",
            "gpu_index": gpu % 8, "at": BEGIN, "category": "productive", "label": "Productive",
            "colour": "productive", "run_key": "c/7", "run_id": "7", "job_name": "train",
            "team": "nlp", "runs": 1, "events": 0, "errors": gpu % 3, "power_w": 100.0 + gpu % 8,
            "gpu_temperature_c": 50.0 + gpu % 8,
        }  # fmt: skip
        rows.append({**row, **columns})
    frame = pl.DataFrame(rows, schema_overrides={"rack": pl.String()})
    keys = {"gpu_key": "gpu_uuid", "node_key": "node"}
    return frame.with_columns(
        *(pl.col(column).alias(key) for key, column in keys.items()),
        rack_key="c/" + pl.col("rack").fill_null(""),
    )


def bins(keys, hours, **columns):
    rows = [
        {"key": key, "at": BEGIN + timedelta(hours=hour), "category": "productive",
         "label": "Productive", "colour": "productive", "gpu_ms": 1, **columns}
        for key in keys
        for hour in range(hours)
    ]  # fmt: skip
    types = {"value": pl.Float32()} if "value" in columns else {}
    return pl.DataFrame(rows, schema_overrides=types)


def over_time(rows, found, bars=None, marks=None, metric=None, window=WINDOW):
    """Return the figure of rows over time, without allocations or events unless given."""
    of_marks = {"lane": pl.String(), "at": pl.Datetime("us"), "hover": pl.String()}
    no_marks = pl.DataFrame(schema=of_marks)
    text = dict.fromkeys(("run_key", "run_id", "job_name", "team", "job_run_key"), pl.String())
    times = dict.fromkeys(("start_at", "end_at"), pl.Datetime("us"))
    no_bars = pl.DataFrame(schema={**text, **times, "gpus": pl.Int64(), "runs": pl.Int64()})
    return rows_over_time.over_time(
        rows, found, no_bars if bars is None else bars, no_marks if marks is None else marks,
        metric, HOUR_MS, window,
    )  # fmt: skip


def named(figure, kind):
    return [trace for trace in figure.data if trace.type == kind]


@each((1_000, {"nodes_of_rack": 4}), (800, {"rack": None}))
def test_racks_that_do_not_fit_go_on_below_and_no_cells_overlap(gpus, rack):
    """Many nodes without a rack stand in columns under one title."""
    found, _ = fleet_parts.cells(states(gpus, **rack), None)
    at, titles, height = rack_grid.placed(found)
    assert len(set(at.select("x", "y").rows())) == gpus
    assert at["x"].max() < rack_grid.CELLS_ACROSS
    assert at["y"].max() < height
    if "rack" in rack:
        assert titles["title"].to_list()[0] == fleet_parts.RACK_UNKNOWN
        assert set(titles["title"].to_list()[1:]) == {""}


def test_a_cell_has_the_colour_of_its_category_or_value_or_is_grey_and_opens_its_gpu():
    frame = pl.concat([states(8), states(8, category=None, label=None, colour=None)])
    found, _ = fleet_parts.cells(frame, None)
    first, second = named(rack_grid.rack_grid(found, None, NO_MARKS), "bar")

    assert [one.name for one in (first, second)] == ["Productive (8)", "No data (8)"]
    looks = theme.STYLES["productive"], theme.UNKNOWN_STYLE
    assert [one.marker.color for one in (first, second)] == [look.colour for look in looks]
    assert first.customdata[0][0] == "gpu:GPU-0"

    power = pl.Series([None, *range(100, 107)], dtype=pl.Float64())
    found, _ = fleet_parts.cells(states(8).with_columns(power_w=power), "power_w")
    read, missing = named(rack_grid.rack_grid(found, POWER, NO_MARKS), "bar")
    assert read.marker.color.tolist() == list(range(100, 107))
    assert (read.marker.cmin, read.marker.cmax) == (100, 106)
    assert (missing.name, missing.marker.color) == ("No data (1)", cell_colours.NO_DATA_COLOUR)


def test_a_gpu_that_is_not_available_is_hollow_and_its_ticket_stands_behind_its_node():
    away = {"category": "not_available", "label": "Not available", "colour": "drained"}
    found, _ = fleet_parts.cells(states(8, **away), None)
    marks = pl.DataFrame({"node_key": ["n00000"], "severity": ["ticket"], "title": ["drained"]})

    figure = rack_grid.rack_grid(found, None, marks)
    (cells,) = named(figure, "bar")
    assert cells.marker.color == rack_grid.HOLLOW["color"]
    (mark,) = named(figure, "scatter")
    assert (mark.name, mark.customdata[0][0]) == ("ticket (1)", "node:n00000")
    assert mark.x[0] > cells.x.max()


def test_of_very_many_gpus_the_cells_are_nodes_with_the_category_of_most():
    is_most = pl.when(pl.col("gpu_index") < 5)
    down = {name: is_most.then(pl.lit("Down")).otherwise(name) for name in ("category", "label")}

    found, are_nodes = fleet_parts.cells(states(1_600).with_columns(**down), "power_w")

    assert (are_nodes, found.height) == (True, 200)
    assert found.select("id", "label").row(0) == ("node:n00000", "Down")
    assert found["value"][0] == pytest.approx(103.5)


@each((64, "r1", "gpu"), (512, "r1", "node"), (10_000, "r", "rack"), (10_000, None, "node"))
def test_rows_are_as_fine_as_can_be_seen(gpus, rack, level):
    frame = states(gpus) if rack == "r" else states(gpus, rack=rack)
    assert fleet_parts.level_of(frame) == level


def test_a_lane_is_the_ledger_of_its_bins_in_shares_and_a_metric_is_in_its_unit():
    """What is first in the order of stacks stands at the bottom."""
    rows = fleet_parts.rows_of(states(8), None, pl.DataFrame())
    found = bins(["GPU-0"], 2, gpu_ms=3 * HOUR_MS)
    idle = bins(["GPU-0"], 1, gpu_ms=HOUR_MS, category="idle", label="Idle", colour="free")
    share = fleet_parts.SHOWN["sm_active_ratio"]

    useful, free, *_ = named(over_time(rows, pl.concat([found, idle])), "bar")
    (of_metric,) = named(over_time(rows, bins(["GPU-1"], 1, value=0.5), metric=share), "heatmap")

    assert (useful.name, useful.marker.color) == ("Productive", theme.STYLES["productive"].colour)
    assert useful.y[0] == "n00000 GPU 0"
    assert useful.customdata.tolist() == [[0.75, 3], [1, 3]]
    assert (useful.width / rows_over_time.BAR_HEIGHT).tolist() == pytest.approx([0.75, 1])
    assert useful.offset[0] == free.offset[0] + free.width[0]
    assert of_metric.z[1].tolist() == [50.0]
    assert np.isnan(of_metric.z[0]).all()
    assert (of_metric.zmin, of_metric.zmax) == (0, 100)


WASTED = pl.DataFrame({"key": ["GPU-2", "GPU-5"], "wasted_ms": [1, 2]})
APART = pl.DataFrame({"key": ["GPU-4", "GPU-1"], "deviation": [0.5, 0.9]})


@each(
    ("waste", WASTED, ["GPU-5", "GPU-2", "GPU-0"]), ("temperature", pl.DataFrame(), ["GPU-7"]),
    ("health", pl.DataFrame(), ["GPU-2", "GPU-5"]),
    ("deviation", APART, ["GPU-1", "GPU-4", "GPU-0"]),
)  # fmt: skip
def test_rows_are_sorted_by_what_is_chosen(by, given, first):
    assert fleet_parts.rows_of(states(8), by, given)["key"].to_list()[: len(first)] == first


def test_a_bar_opens_its_run_and_names_are_text():
    rows = fleet_parts.rows_of(states(8, node=HOSTILE), None, pl.DataFrame())
    bar = {
        "run_key": "c/7", "run_id": "7", "job_name": HOSTILE, "team": "nlp", "job_run_key": "c/7@1",
        "start_at": BEGIN, "end_at": BEGIN + timedelta(hours=1), "gpus": 8, "runs": 1,
    }  # fmt: skip

    figure = over_time(rows, bins(["GPU-0"], 1), pl.DataFrame([bar]))
    shown = next(trace for trace in named(figure, "bar") if trace.name == "Allocated")
    assert shown.customdata[0][0] == "run:c/7"
    text = figure.to_json()
    assert "<b>r</b>" not in text
    assert "%{x} " not in text.replace("%{x|", "")


def test_an_event_is_a_mark_in_its_row_and_opens_it():
    rows = fleet_parts.rows_of(states(8), None, pl.DataFrame())
    marks = pl.DataFrame({"lane": ["GPU-1", "GPU-of-others"], "at": [BEGIN] * 2, "hover": "Xid 79"})

    figure = over_time(rows, bins(["GPU-0"], 1), marks=marks)
    (mark,) = (trace for trace in named(figure, "scatter") if trace.name == cell_colours.EVENTS)
    assert list(mark.y) == ["n00000 GPU 1"]
    assert list(mark.customdata[0]) == ["gpu:GPU-1", "Xid 79"]
    alike = fleet_parts.rows_of(states(8, gpu_index=0), None, pl.DataFrame())
    figure = over_time(alike, bins(alike["key"].to_list(), 1))
    assert len(set(named(figure, "bar")[0].y)) == 8


@pytest.mark.parametrize("show", [None, "power_w"])
@pytest.mark.parametrize("gpus", [128, 1_024, 1_500, 10_000])
def test_a_page_of_any_fleet_is_below_a_megabyte(gpus, show):
    frame = states(gpus)
    metric = fleet_parts.SHOWN.get(show or "")
    most = fleet.ROWS_MAX if show else fleet.LANES_MAX
    rows = fleet_parts.rows_of(frame, None, pl.DataFrame(), most)
    rows = rows.head(most) if show else fleet_parts.lanes_of(rows)
    across = fleet.BINS_MAX if show else fleet.CELLS_MAX // rows.height
    styles = [dict.fromkeys(("category", "label", "colour"), name) for name in theme.STYLES]
    of = [{"value": 300.0}] if show else styles[:9]
    found = pl.concat([bins(rows["key"].to_list(), across, **one) for one in of])
    window = BEGIN, BEGIN + timedelta(hours=fleet.BINS_MAX)
    cells, _ = fleet_parts.cells(frame, show)
    of_racks = rack_grid.rack_grid(cells, metric, NO_MARKS)
    drawn = of_racks, over_time(rows, found, metric=metric, window=window)

    assert sum(len(figure.to_json()) for figure in drawn) < LIMIT_BYTES
    assert max(len(trace.x) for trace in named(of_racks, "bar")) <= fleet_parts.CELLS_MAX
