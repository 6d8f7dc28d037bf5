"""A table of nvidia-smi whose rows name their GPUs."""

from zoneinfo import ZoneInfo

from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.gpu_table.source import GpuTable


def test_a_gpu_with_a_uuid_needs_no_node_and_the_ingest_says_what_that_costs(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("timestamp, uuid, power.draw [W]\n2026/11/27 18:37:24.961, GPU-a, 71.02 W\n")

    (samples,) = GpuTable(path, ReadOptions(zone=ZoneInfo("UTC"))).extract()

    assert samples.rows.select("gpu_uuid", "power_w").rows() == [("GPU-a", 71.02)]
    assert "name it with --node" in samples.note
