"""The GPU inventory that a site writes."""

from datetime import UTC, datetime

import pytest

from goodput_ingest.formats import csv_table
from goodput_ingest.formats.timestamps import instants
from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.registry import recognise
from goodput_ingest.sources.site.inventory import Inventory
from goodput_queries.errors import IngestError

JOINED = datetime(2026, 11, 20, 11, 45, 9, tzinfo=UTC).replace(tzinfo=None)


def tables(folder, text, **options):
    file = folder / "inventory.csv"
    file.write_text(text)
    return {batch.table: batch for batch in Inventory(file, ReadOptions(**options)).extract()}


def read(folder, text, **options):
    found = tables(folder, text, **options)
    return found["gpus"], found["gpu_instances"]


def racks(folder, text, **options):
    columns = "cluster", "node", "rack", "rack_row", "feed"
    return tables(folder, text, **options)["node_racks"].rows.select(columns).to_dicts()


def test_a_row_a_gpu_keeps_all_its_names(tmp_path):
    gpus, _ = read(
        tmp_path,
        "node,gpu_index,slurm_index,gpu_uuid,pci_bus_id,gpu_model,valid_from,valid_to\n"
        "node001,3,0,GPU-5a,0000:9B:00.0,H100,2026-11-20T12:45:09+01:00,2026-12-01T00:00:00Z\n",
    )

    (row,) = gpus.rows.to_dicts()
    assert row["gpu_uuid"] == "GPU-5a"
    assert (row["gpu_index"], row["slurm_index"]) == (3, 0)
    assert row["pci_bus_id"] == "00000000:9b:00.0"
    assert row["valid_from_at"] == JOINED


def test_a_row_a_node_gives_numbered_slots(tmp_path):
    gpus, _ = read(tmp_path, "node,gpus,gpu_model\nnode001,8,H100\n")

    assert gpus.rows["gpu_uuid"].to_list() == [f"node001#{i}" for i in range(8)]
    assert gpus.rows["gpu_model"].unique().to_list() == ["H100"]


def test_a_gpu_in_mig_mode_joins_with_its_instances(tmp_path):
    gpus, instances = read(
        tmp_path,
        'node,gpus,mig,valid_from\nmig01,1,"1g.10gb:4,3g.40gb:1",2026-11-20T11:45:09Z\n',
        cluster="lab",
    )

    assert gpus.rows.select("gpu_uuid", "valid_from_at").rows() == [("mig01#0", JOINED)]
    assert instances.rows["gpu_instance"].to_list() == [
        *[f"1g.10gb.{n}" for n in range(4)],
        "3g.40gb.0",
    ]
    assert instances.rows["valid_from_at"].unique().to_list() == [JOINED]
    assert instances.rows["cluster"].unique().to_list() == ["lab"]


def test_a_node_has_the_rack_row_and_feed_of_its_gpus(tmp_path):
    text = "node,slurm_index,rack,row,feed\nn1,0,r07,B,A+B\nn1,1,r07,B,A+B\nn2,0,,,\n"

    found = racks(tmp_path, text, cluster="lab")

    place = {"rack": "r07", "rack_row": "B", "feed": "A+B"}
    assert found == [{"cluster": "lab", "node": "n1", **place}]


def test_racks_alone_are_no_gpus(tmp_path):
    found = tables(tmp_path, "node,rack\nn1,r1\nn2,<b>r2</b>\n")

    assert recognise(tmp_path / "inventory.csv") is Inventory
    assert found["gpus"].rows.is_empty()
    assert not found["gpus"].rejects
    assert found["node_racks"].rows["rack"].to_list() == ["r1", "<b>r2</b>"]


def test_of_a_node_that_was_moved_the_latest_rack_is_used(tmp_path):
    text = (
        "node,slurm_index,valid_from,valid_to,rack\n"
        "n1,0,2026-11-20T00:00:00Z,,new\n"
        "n1,0,2026-11-10T00:00:00Z,2026-11-20T00:00:00Z,old\n"
    )

    assert [row["rack"] for row in racks(tmp_path, text)] == ["new"]


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


def test_it_is_known_by_its_header_and_read_once(tmp_path, store):
    file = tmp_path / "gpus.csv"
    file.write_text("node,gpus\nnode001,8\n")
    assert recognise(file) is Inventory

    first, second = (ingest(store, "auto", [file], ReadOptions()) for _ in range(2))

    assert (first.rows_new, second.rows_new) == (8, 0)


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
