"""The GPU inventory that a site writes."""

import pytest

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.site.inventory import Inventory
from goodput_queries.errors import IngestError


def test_racks_that_are_read_again_replace_those_before(tmp_path, whole_store):
    file = tmp_path / "inventory.csv"
    for rack in ("wrong", "right", "wrong"):
        file.write_text(f"node,gpus,rack\nn1,8,{rack}\n")
        ingest(whole_store, "auto", [file], ReadOptions())

    assert whole_store.read("select node, rack from staging.stg_node_racks").rows() == [
        ("n1", "wrong")
    ]


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("node,gpus,color", "'color' is not known"),
        ("gpus,gpu_model", "'node' is missing"),
        ("node,gpus,gpus", "twice"),
    ],
)
def test_a_header_with_other_columns_is_refused(tmp_path, header, expected):
    file = tmp_path / "inventory.csv"
    file.write_text(f"{header}\n")

    with pytest.raises(IngestError, match=expected):
        list(Inventory(file, ReadOptions()).extract())
