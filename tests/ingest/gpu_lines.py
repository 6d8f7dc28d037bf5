# ruff: noqa: DTZ001 -- moments are stored naive, in UTC
"""Lines of exporters for tests, and the rows that they become."""

from datetime import datetime, timedelta

import polars as pl

from goodput_ingest.gpu_metrics import gpu_rows, labels

START = datetime(2026, 11, 20, 12)
GPU = {"UUID": "GPU-a", "gpu": "0", "Hostname": "n1", "modelName": "H100"}


def rows(lines, memory=None, node=None):
    """Return the rows of each raw table that the lines give."""
    sets = [line[1] for line in lines]
    names = sorted({name for one in sets for name in one}) or ["gpu"]
    label_sets = pl.DataFrame(
        {name: [one.get(name) for one in sets] for name in names},
        schema=dict.fromkeys(names, pl.String),
    )
    numbers = pl.Series(range(len(lines)), dtype=pl.UInt32)
    points = pl.DataFrame({
        "series": numbers, "ts": [START + timedelta(seconds=s) for _, _, s, _ in lines],
        "value": pl.Series([float(value) for *_, value in lines], dtype=pl.Float64),
    })  # fmt: skip
    series = pl.DataFrame({"metric": [line[0] for line in lines], "labels": numbers})
    found = gpu_rows(
        points, series, labels.normalise(label_sets, node=node), source="test", memory=memory
    )
    return {parsed.table: parsed.rows.rows(named=True) for parsed in found}


def power(seconds, **more):
    return ("DCGM_FI_DEV_POWER_USAGE", {**GPU, **more}, seconds, 600)
