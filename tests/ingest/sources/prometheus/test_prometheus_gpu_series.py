"""Many series at once: in parts for speed, with the rows that one part would give."""

import numpy as np
import pytest

from goodput_ingest.gpu_metrics import Memory
from goodput_ingest.prometheus_api import gpu_series
from goodput_ingest.prometheus_api.answer import Series

T_MS = 1_787_234_539_482


def series(name, target, gpu, *values, **labels):
    times_ms = T_MS + 30_000 * np.arange(len(values), dtype=np.int64) + target
    own = {"UUID": f"GPU-{target}-{gpu}", "instance": f"10.0.0.{target}:9400", "gpu": str(gpu)}
    return Series({"__name__": name, **own, **labels}, times_ms, np.array(values, float))


@pytest.fixture
def fleet():
    """Give three targets that have not all the same metrics."""
    found = [
        series("DCGM_FI_DEV_GPU_UTIL", target, gpu, 10 * target, 20 + gpu)
        for target in (1, 2, 3)
        for gpu in (0, 1)
    ]
    found.append(series("DCGM_FI_DEV_POWER_USAGE", 1, 0, 300, 310))
    found.append(series("DCGM_FI_DEV_POWER_USAGE", 3, 1, 500, 510, hpc_job="7"))
    found.append(series("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", 2, 0, 0, 1))
    found.append(series("DCGM_FI_DEV_ENFORCED_POWER_LIMIT", 3, 0, 700, 700))
    return found


def rows(fleet):
    parsed = gpu_series.parsed_gpu_rows(fleet, source="s", cluster="c", memory=Memory())
    return {
        one.table: one.rows.select(sorted(one.rows.columns))
        .sort(sorted(one.rows.columns))
        .to_dicts()
        for one in parsed
    }


def test_parts_give_the_rows_that_one_part_gives(fleet, monkeypatch):
    whole = rows(fleet)
    monkeypatch.setattr(gpu_series, "POINTS_PER_PART", 1)

    assert rows(fleet) == whole
    assert len(whole["gpu_samples"]) == 12
    assert {"gpu_samples", "gpu_samples_other", "gpus", "gpu_owners"} <= set(whole)


def test_nothing_gives_nothing():
    assert gpu_series.parsed_gpu_rows([], source="s", cluster=None, memory=Memory()) == []
    assert gpu_series.normalised([]) == []
