"""Two public traces that no scheduler's tool printed, by way of the formats that sites can write.

v2023: Kubernetes pods with shares of a GPU. Written as accounting rows in which a GPU is a
thousandth, since a share has no other form there; the trace has no calendar date, 2020 begins it.
GenAI: the duty cycle of containers. Written as bulk readings, a container for a GPU.
"""

import polars as pl
import pytest
from tests.external_data import EXTERNAL, reading

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.registry import recognise

pytestmark = reading(EXTERNAL)
V2023_PODS = EXTERNAL / "alibaba-gpu-v2023" / "openb_pod_list_default.csv.gz"
DUTY_CYCLES = EXTERNAL / "alibaba-genai-2026-a" / "pod_gpu_duty_cycle_anon.csv.gz"
BEGIN_S = 1_577_836_800  # 2020-01-01
PARTS = 1_000  # of a GPU
SCRAPE_S = 57


def written_as_accounting(pods, folder):
    """Write pods as `sacct -P` prints jobs: Pending ones never started, the others did end."""
    file = folder / "sacct.txt"
    pl.read_csv(pods).select(
        Cluster=pl.lit("openb"),
        JobID=pl.int_range(1, pl.len() + 1),
        JobName="name",
        QOS="qos",
        State=pl.when(pl.col("scheduled_time").is_null())
        .then(pl.lit("CANCELLED"))
        .otherwise(pl.lit("COMPLETED")),
        Submit=pl.col("creation_time") + BEGIN_S,
        Start=pl.when(pl.col("scheduled_time").is_null())
        .then(pl.lit("None"))
        .otherwise((pl.col("scheduled_time") + BEGIN_S).cast(pl.String)),
        End=pl.col("deletion_time") + BEGIN_S,
        AllocTRES=pl.format("gres/gpu={}", pl.col("num_gpu") * pl.col("gpu_milli")),
    ).write_csv(file, separator="|", quote_style="never")
    return file


def written_as_readings(cycles, folder):
    """Write duty cycles as bulk readings: percent made ratio, the scrape's second its moment."""
    file = folder / "readings.parquet"
    pl.read_csv(cycles).select(
        ts=pl.from_epoch(
            (pl.col("timestamp_anon") * 1_000_000).cast(pl.Int64), "us"
        ).dt.replace_time_zone("UTC"),
        gpu_uuid=pl.format("GPU-{}", "container_ip"),
        gpu_busy_ratio=pl.col("value") / 100,
    ).sort("gpu_uuid", "ts").write_parquet(file)
    return file


def test_pods_with_shares_hold_the_gpu_hours_of_the_trace(store, tmp_path):
    summary = ingest(store, "auto", [written_as_accounting(V2023_PODS, tmp_path)], ReadOptions())

    found = store.read(
        f"""select count(*), count(*) filter (where start_at is null),
            round(sum(gpus * date_diff('second', start_at, end_at)) / {PARTS} / 3600, 4)
        from raw.job_runs"""
    )

    assert (summary.rejects, summary.unrecognised) == (0, [])
    assert found.rows() == [(8_152, 897, 51_470.6742)]


def test_containers_idle_and_are_missed_as_the_trace_says(store, tmp_path):
    """566 stretches of 10 min and more at 0 %, a hole ends one; 839 holes with 1,376 samples."""
    file = written_as_readings(DUTY_CYCLES, tmp_path)
    assert recognise(file).name == "telemetry-parquet"
    ingest(store, "auto", [file], ReadOptions())

    rows = store.read("select gpu_uuid, ts, gpu_busy_ratio = 0 as is_idle from raw.gpu_samples")
    readings = rows.sort("gpu_uuid", "ts").with_columns(
        since_s=pl.col("ts").dt.epoch("s").diff().over("gpu_uuid"),
        is_turn=(pl.col("is_idle") != pl.col("is_idle").shift()).over("gpu_uuid"),
    )
    is_first = pl.col("since_s").is_null() | (pl.col("since_s") > SCRAPE_S) | pl.col("is_turn")
    stretches = readings.group_by(is_first.cum_sum()).agg(
        pl.col("is_idle").first(), stretch_s=pl.len() * SCRAPE_S
    )
    idle = stretches.filter(pl.col("is_idle") & (pl.col("stretch_s") >= 600))["stretch_s"]
    holes = readings.filter(pl.col("since_s") > SCRAPE_S)["since_s"]

    assert len(idle) == 566
    assert idle.sum() / 3600 == pytest.approx(206.578, abs=0.0006)
    assert (len(holes), (holes // SCRAPE_S - 1).sum(), holes.max()) == (839, 1_376, 2_451)
