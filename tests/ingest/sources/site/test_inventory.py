"""The GPU inventory that a site writes."""

import pytest

from goodput_ingest.formats import csv_table
from goodput_ingest.formats.timestamps import instants
from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.site.inventory import Inventory
from goodput_queries.errors import IngestError


def tables(folder, text, **options):
    file = folder / "inventory.csv"
    file.write_text(text)
    return {batch.table: batch for batch in Inventory(file, ReadOptions(**options)).extract()}


def read(folder, text, **options):
    found = tables(folder, text, **options)
    return found["gpus"], found["gpu_instances"]


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
    with pytest.raises(IngestError, match=expected):
        read(tmp_path, f"{header}\n")


def test_times_are_parsed_at_once_however_many_rows_there_are(tmp_path, monkeypatch):
    calls = []

    def counted(texts, *rest, **more):
        calls.append(texts.len())
        return instants(texts, *rest, **more)

    monkeypatch.setattr(csv_table, "instants", counted)
    rows = [f"n{i},8,2026-11-20T00:00:{i % 3:02d}Z\n" for i in range(50)]
    gpus, _ = read(tmp_path, "node,gpus,valid_from\n" + "".join(rows))

    assert gpus.rows.height == 400
    assert calls == [4]  # three times and the empty cell
