"""Answers of Prometheus to a range query, and what others would do with them.

Ours parses, brings into canonical units and pivots into wide rows; the alternatives only come to a
table of points, which is the part of the work that they offer.
"""

import json
import random
import warnings

import polars as pl
from tests.benchmarks.formats import Alternative, Files, Format

from goodput_ingest.source import ReadOptions

INTERVAL_S, POINTS_PER_SERIES = 30, 720
START_S = 1_787_234_539.482
METRICS = (
    ("DCGM_FI_DEV_GPU_UTIL", lambda rng, _: str(rng.randint(0, 100))),
    ("DCGM_FI_DEV_POWER_USAGE", lambda rng, _: f"{rng.uniform(70, 700):.3f}"),
    ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", lambda _, i: str(918_273_645_546 + 9_000_000 * i)),
    ("DCGM_FI_DEV_SM_CLOCK", lambda rng, _: str(rng.choice((345, 1980)))),
    ("DCGM_FI_DEV_GPU_TEMP", lambda rng, _: str(rng.randint(30, 80))),
    ("DCGM_FI_DEV_FB_USED", lambda rng, _: str(rng.randint(0, 81_559))),
    ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", lambda rng, _: f"{rng.random():.6f}"),
    ("DCGM_FI_PROF_SM_ACTIVE", lambda rng, _: f"{rng.random():.6f}"),
    ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", lambda rng, _: f"{rng.random():.6f}"),
    ("DCGM_FI_PROF_DRAM_ACTIVE", lambda rng, _: f"{rng.random():.6f}"),
)


def write_answer(file, points):
    """Write an answer of about so many points as the server would; return how many."""
    rng = random.Random(1)  # noqa: S311 -- no secret
    gpus = max(1, round(points / (len(METRICS) * POINTS_PER_SERIES)))
    with file.open("w") as out:
        out.write('{"status":"success","data":{"resultType":"matrix","result":[')
        for gpu in range(gpus):
            labels = {
                "Hostname": f"gpu-a{gpu // 8:04}",
                "UUID": f"GPU-{rng.getrandbits(32):08x}-0000-4000-8000-{gpu:012x}",
                "device": f"nvidia{gpu % 8}",
                "gpu": str(gpu % 8),
                "instance": f"10.0.{gpu // 2048}.{gpu // 8 % 256}:9400",
                "job": "dcgm",
                "modelName": "NVIDIA H100 80GB HBM3",
                "pci_bus_id": f"00000000:{gpu % 8:02x}:00.0",
            }
            offset_s = gpu // 8 % 30_000 / 1000
            for number, (name, value) in enumerate(METRICS):
                metric = json.dumps({"__name__": name, **labels}, separators=(",", ":"))
                values = ",".join(
                    f'[{START_S + offset_s + INTERVAL_S * i:.3f},"{value(rng, i)}"]'
                    for i in range(POINTS_PER_SERIES)
                )
                comma = "," if gpu or number else ""
                out.write(f'{comma}{{"metric":{metric},"values":[{values}]}}')
        out.write("]}}")
    return gpus * len(METRICS) * POINTS_PER_SERIES


def metric_range_data_frame(file, _):
    """Build prometheus-api-client's frame (pandas): points only, values as they came."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from prometheus_api_client import MetricRangeDataFrame  # noqa: PLC0415 -- slow to import

        MetricRangeDataFrame(json.loads(file.read_bytes())["data"]["result"])


def polars(file, _):
    """Let Polars read the JSON and lay it out as points."""
    pl.read_json(file).select(pl.col("data").struct.field("result")).explode("result").unnest(
        "result"
    ).explode("values").with_columns(
        pl.col("values").list.get(0).cast(pl.Float64).alias("ts"),
        pl.col("values").list.get(1).cast(pl.Float64).alias("value"),
    )


RANGE_QUERY = Files(
    Format(
        name="range-query JSON",
        source="prometheus",
        unit="M points",
        per_unit=1e6,
        budget_per_s=1.5e6,
        alternatives=(
            Alternative(
                "MetricRangeDataFrame (points)", metric_range_data_frame, ("prometheus_api_client",)
            ),
            Alternative("Polars read_json (points)", polars),
        ),
        full=3_000_000,
        options=ReadOptions(cluster="bench"),
    ),
    write_answer,
)
