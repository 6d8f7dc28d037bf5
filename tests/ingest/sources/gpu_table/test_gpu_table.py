"""Tables of nvidia-smi and dcgmi that cannot be placed are refused with what to add."""

from zoneinfo import ZoneInfo

import pytest

from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.gpu_table.source import GpuTable
from goodput_ingest.sources.registry import recognise
from goodput_queries.errors import IngestError

QUERY = "timestamp, uuid, power.draw [W]\n2026/11/27 18:37:24.961, GPU-a, 71.02 W\n"
OF_TIME = "#Time     gpu  pwr\n#HH:MM:SS Idx  W\n 18:37:29  0   70\n"
DMON = "# gpu    pwr\n# Idx      W\n    0     70\n"
PLACED = ReadOptions(node="gpu01", zone=ZoneInfo("UTC"))
REFUSED = {
    "no zone": (QUERY, ReadOptions(), "carry no offset from UTC. Name their time zone"),
    "noheader": (QUERY.split("\n", 1)[1], PLACED, "line 1 comes before any header"),
    "no time": (QUERY.replace("timestamp, ", "").replace("2026/11/27 18:37:24.961, ", ""),
                PLACED,
                "nothing says when a row was read. Add timestamp to `nvidia-smi --query-gpu`"),
    "dmon without -o DT": (DMON, PLACED, "Run nvidia-smi dmon with -o DT, or pipe it through ts"),
    "dmon with -o T": (OF_TIME, PLACED, "-o DT"),
    "no node": (DMON, ReadOptions(), "a number and no UUID. Name their node with --node"),
    "no GPU": (QUERY.replace("uuid", "name"), PLACED, "Add uuid to `nvidia-smi --query-gpu`"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "options", "said"), REFUSED.values(), ids=REFUSED)
def test_a_table_that_cannot_be_placed_says_what_to_add(tmp_path, text, options, said):
    path = tmp_path / "table.txt"
    path.write_text(text)

    assert recognise(path) is GpuTable
    with pytest.raises(IngestError) as refused:
        list(GpuTable(path, options).extract())
    assert said in str(refused.value)


def test_a_gpu_with_a_uuid_needs_no_node_and_the_ingest_says_what_that_costs(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(QUERY)

    (samples,) = GpuTable(path, ReadOptions(zone=ZoneInfo("UTC"))).extract()

    assert samples.rows.select("gpu_uuid", "power_w").rows() == [("GPU-a", 71.02)]
    assert "name it with --node" in samples.note
