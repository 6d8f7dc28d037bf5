"""A label takes no device away: shares repeat a reading, and `N/A` is no partition."""

import polars as pl
import pytest

from goodput_ingest.gpu_metrics import labels
from goodput_ingest.run import ingest
from goodput_ingest.source import ReadOptions

UUID = "GPU-11111111-2222-3333-4444-555555555555"
SERIES = f'UUID="{UUID}",gpu="0",Hostname="w1",modelName="Tesla T4"'


@pytest.mark.parametrize("label", ["vgpu", "a_label_that_nobody_knows"])
def test_series_of_virtual_gpus_are_one_reading_of_the_device(store, tmp_path, label):
    page = tmp_path / "scrape.prom"
    page.write_text(
        "".join(
            f'{name}{{{SERIES},pod="p{share}",namespace="ns",{label}="{share}"}} {value} {ms}\n'
            for ms in (1795183200000, 1795183230000)
            for name, value in (("DCGM_FI_DEV_GPU_UTIL", 71), ("DCGM_FI_DEV_POWER_USAGE", 70.5))
            for share in range(3)
        )
    )
    ingest.ingest(store, "dcgm", [page], ReadOptions("lab"))

    rows = store.read("select gpu_uuid, gpu_instance, gpu_busy_ratio, power_w from raw.gpu_samples")
    assert rows.rows() == [(UUID, "", 0.71, 70.5)] * 2
    assert store.read("select * from raw.gpu_samples_other").is_empty()
    assert store.read("select distinct owner from raw.gpu_owners").height == 3


@pytest.mark.parametrize("text", ["none", "N/A", "NA", "", "[N/A]"])
def test_an_amd_gpu_without_partitions_is_a_whole_gpu(text):
    given = pl.DataFrame(
        {
            "gpu_uuid": ["88ff740f-0000-1000-80d1-000000000000"],
            "gpu_compute_partition_type": [text],
            "gpu_partition_id": [text],
            "serial_number": ["N/A"],
            "card_model": ["N/A"],
            "card_series": ["AMD Instinct MI210"],
        }
    )

    (row,) = labels.normalise(given).rows(named=True)

    assert row["gpu_uuid"] == "88ff740f-0000-1000-80d1-000000000000"
    assert (row["gpu_instance"], row["is_other_partition"]) == ("", False)
    assert row["gpu_model"] == "AMD Instinct MI210"
