"""Tables of a site: telemetry as Parquet, racks and prices."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tables import each

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.site import telemetry_parquet
from goodput_ingest.sources.site.rates import Rates
from goodput_ingest.sources.site.telemetry_parquet import TelemetryParquet
from goodput_queries.errors import IngestError

START = datetime(2026, 11, 16, 8, tzinfo=UTC)


def readings(rows=4, **columns):
    times = [START + timedelta(seconds=30 * i) for i in range(rows)]
    known = {"gpu_uuid": ["GPU-1"] * rows, "engine_active_ratio": [0.9] * rows}
    ts = pl.Series(times, dtype=pl.Datetime("us", "UTC"))
    return pl.DataFrame({"ts": ts, **known, **columns})


def write(folder, frame, **options):
    path = folder / "gpu.parquet"
    frame.write_parquet(path, **options)
    return path


def batches(path, **options):
    return list(TelemetryParquet(path, ReadOptions(**options)).extract())


def test_a_row_is_kept_under_its_canonical_names_and_one_of_an_instance_is_its_own(tmp_path):
    more = {"power_w": [612.5, 80.0], "memory_used_bytes": [7, 8]}
    path = write(tmp_path, readings(2, gpu_instance=[None, "1g.10gb.0"], **more))

    (batch,) = batches(path)

    assert batch.table == "gpu_samples"
    assert batch.rows["gpu_instance"].to_list() == ["", "1g.10gb.0"]
    assert batch.rows.row(0, named=True) == {
        "source": "telemetry-parquet", "gpu_uuid": "GPU-1", "gpu_instance": "",
        "ts": START.replace(tzinfo=None), "engine_active_ratio": 0.9, "power_w": 612.5,
        "memory_used_bytes": 7, "is_flagged": False,
    }  # fmt: skip


NO_VALUES = [
    ("power_w", 140_737_488_355_328.0), ("power_w", 9_223_372_036_854_775_794.0),
    ("power_w", float("inf")), ("power_w", float("nan")),
    ("power_w", -1.5e269),  # of a damaged file
    ("memory_used_bytes", 9_223_372_036_854_775_794),
    ("clocks_event_reasons", 9_223_372_036_854_775_792), ("engine_active_ratio", 1.01),
    ("tensor_active_ratio", 42.0), ("gpu_busy_ratio", -0.5),
]  # fmt: skip


@each(
    *((column, value, None, True) for column, value in NO_VALUES),
    ("sm_active_ratio", 1.00005, 1.00005, False),  # rounding
    ("power_w", None, None, False),  # not measured
)
def test_what_is_no_value_becomes_null_and_is_flagged(tmp_path, column, value, stored, is_flagged):
    good = type(stored or value or 1.0)(0)

    rows = batches(write(tmp_path, readings(2, **{column: [value, good]})))[0].rows

    assert rows[column].to_list() == [stored, good]
    assert rows["is_flagged"].to_list() == [is_flagged, False]


def test_numbers_under_other_names_are_kept_one_by_one_and_a_column_of_text_is_rejected(tmp_path):
    columns = {"ecc_corrected_volatile_total": [1, None, 3], "rack": ["r1"] * 3}

    batch, other = batches(write(tmp_path, readings(3, **columns)))

    assert other.table == "gpu_samples_other"
    assert other.rows.select("metric", "value").rows() == [
        ("ecc_corrected_volatile_total", 1.0), ("ecc_corrected_volatile_total", 3.0),
    ]  # fmt: skip
    assert [r.reason for r in (*batch.rejects, *other.rejects)] == [
        "telemetry-parquet: column rack is String, only numbers are stored."
    ]


def test_rows_without_a_key_are_rejected(tmp_path):
    path = write(tmp_path, readings(3).with_columns(gpu_uuid=pl.Series([None, "", "GPU-1"])))

    (batch,) = batches(path)

    assert batch.rows.height == 1
    assert [r.line for r in batch.rejects] == [1, 2]


READINGS = readings(1)
REFUSED = {
    "lacks gpu_uuid": READINGS.drop("gpu_uuid"),
    "lacks ts": READINGS.drop("ts"),
    "lacks any metric": READINGS.drop("engine_active_ratio"),
    "ts is String": READINGS.with_columns(ts=pl.lit("x")),
    "power_w is String, expected a number in base units": readings(1, power_w=["612 W"]),
    "ts has no time zone": READINGS.with_columns(pl.col("ts").dt.replace_time_zone(None)),
}


@pytest.mark.parametrize("said", REFUSED)
def test_a_file_that_lacks_what_is_needed_is_refused(tmp_path, said):
    with pytest.raises(IngestError, match=said):
        batches(write(tmp_path, REFUSED[said]))


def test_times_without_a_zone_are_of_the_configured_one(tmp_path):
    path = write(tmp_path, REFUSED["ts has no time zone"])

    (batch,) = batches(path, zone=ZoneInfo("Europe/Berlin"))

    assert batch.rows["ts"].item() == datetime(2026, 11, 16, 7)  # noqa: DTZ001 -- naive UTC


def test_coarser_and_finer_times_are_read(tmp_path):
    for unit in ("ms", "ns"):
        frame = readings(1).with_columns(pl.col("ts").cast(pl.Datetime(unit, "UTC")))
        (batch,) = batches(write(tmp_path, frame))
        assert batch.rows.schema["ts"] == pl.Datetime("us")
        assert batch.rows["ts"].item() == START.replace(tzinfo=None)


@pytest.mark.parametrize(
    ("rows", "group", "heights"),
    [(1_000, 40, [80] * 12 + [40]), (250, 250, [100, 100, 50]), (0, 40, [])],
    ids=["of whole row groups", "a row group that is cut", "none of an empty file"],
)
def test_a_file_comes_in_parts(tmp_path, monkeypatch, rows, group, heights):
    monkeypatch.setattr(telemetry_parquet, "ROWS_PER_BATCH", 100)

    found = batches(write(tmp_path, readings(rows), row_group_size=group))

    assert [b.rows.height for b in found] == heights
    assert len({b.digest for b in found}) == len(found)
    assert not found or pl.concat(b.rows for b in found)["ts"].is_sorted()


def test_columns_in_which_nothing_was_ever_written_are_not_measured(tmp_path):
    path = write(tmp_path, readings(2, power_w=[None, None], gpu_instance=[None, None]))

    (batch,) = batches(path)

    assert "power_w" not in batch.rows.columns
    assert batch.rows["gpu_instance"].to_list() == ["", ""]
    assert batch.rejects == []


def test_racks_that_are_read_again_replace_those_before(tmp_path, whole_store):
    file = tmp_path / "inventory.csv"
    for rack in ("wrong", "right", "wrong"):
        file.write_text(f"node,gpus,rack\nn1,8,{rack}\n")
        ingest(whole_store, "auto", [file], ReadOptions())

    found = whole_store.read("select node, rack from staging.stg_node_racks")
    assert found.rows() == [("n1", "wrong")]


@each(("gpus,gpu_model", "'node' is missing"), ("node,gpus,gpus", "twice"))
def test_a_header_with_other_columns_is_refused(read_text, header, expected):
    with pytest.raises(IngestError, match=expected):
        read_text("inventory", f"{header}\n")


@settings(max_examples=80, deadline=None)
@given(price=st.decimals(min_value=0, max_value=10**11, places=6))
def test_any_price_comes_out_as_it_went_in(price, tmp_path_factory):
    file = tmp_path_factory.mktemp("rates") / "rates.csv"
    file.write_text(f"price_per_gpu_h\n{price}\n")

    (batch,) = Rates(file, ReadOptions()).extract()

    assert batch.rows["price_per_gpu_h"].to_list() == [price]
