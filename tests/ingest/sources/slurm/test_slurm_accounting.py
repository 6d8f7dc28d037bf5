"""`sacct` rows: the value of each field, and which rows are rejected."""

from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.slurm import node_lists
from goodput_ingest.sources.slurm.texts import Slurm
from goodput_queries.errors import IngestError

SEPARATOR = "\x1f"
RECORD = {
    "Cluster": "lab",
    "JobID": "7",
    "JobIDRaw": "7",
    "DBIndex": "2798573628995141632",
    "JobName": "train",
    "User": "alice",
    "State": "COMPLETED",
    "Submit": "1795175139",
    "Eligible": "1795175139",
    "Start": "1795175140",
    "End": "1795175200",
    "NodeList": "node[001-002]",
    "AllocTRES": "billing=2,cpu=2,gres/gpu:h100=16,gres/gpu=16,mem=1000M,node=2",
    "ReqTRES": "billing=2,cpu=2,gres/gpu=16,mem=1000M,node=2",
}


def sacct(*records, separator=SEPARATOR, end=""):
    """Return what `sacct -P` prints for these records; the first one's fields are the header."""
    names = list(records[0])
    lines = [names, *([record.get(name, "") for name in names] for record in records)]
    return "".join(separator.join(line) + end + "\n" for line in lines)


def read(folder, text, **options):
    """Return the batches by table of a file with this text."""
    file = folder / "sacct.txt"
    file.write_text(text, encoding="utf-8", errors="surrogateescape")
    return {batch.table: batch for batch in Slurm(file, ReadOptions(**options)).extract()}


def run(folder, record, **options):
    """Return the one job run that a record becomes."""
    batch = read(folder, sacct(record), **options)["job_runs"]
    assert not batch.rejects
    return batch.rows.row(0, named=True)


@pytest.mark.parametrize("separator", ["\x1f", "|", "\t", ";", "^^", "¦"])
@pytest.mark.parametrize("end", ["", None])
def test_the_header_says_the_delimiter(tmp_path, separator, end):
    """Any delimiter does, and one at the end of every line (`sacct -p`) as well."""
    text = sacct(RECORD, separator=separator, end=separator if end is None else end)

    batch = read(tmp_path, text)["job_runs"]

    assert batch.rows["nodes"].to_list() == [["node001", "node002"]]
    assert batch.rows["db_index"].to_list() == [2798573628995141632]
    assert not batch.rejects


def test_fields_come_in_any_order_and_optional_ones_may_be_missing(tmp_path):
    names = ["End", "State", "JobIDRaw", "Start", "Cluster", "Submit"]

    found = run(tmp_path, {name: RECORD[name] for name in names})

    assert found["job_id"] == "7"
    assert found["gpus"] is None
    assert found["db_index"] is None


@pytest.mark.parametrize("name", ["State", "Submit", "Start", "End"])
def test_a_header_without_a_needed_field_is_refused(tmp_path, name):
    record = {key: value for key, value in RECORD.items() if key != name}

    with pytest.raises(IngestError, match=name if name != "State" else "not a text of Slurm"):
        read(tmp_path, sacct(record))


def test_a_cluster_that_nobody_names_is_asked_for(tmp_path):
    record = {key: value for key, value in RECORD.items() if key != "Cluster"}

    with pytest.raises(IngestError, match="--cluster"):
        read(tmp_path, sacct(record))
    assert run(tmp_path, record, cluster="lab")["cluster"] == "lab"


def test_a_local_time_without_a_zone_refuses_the_file(tmp_path):
    with pytest.raises(IngestError, match=r"carries no offset.*--timezone.*SLURM_TIME_FORMAT=%s"):
        read(tmp_path, sacct(RECORD | {"Submit": "2026-11-20T11:45:39"}))


def test_lines_may_end_as_on_windows(tmp_path):
    file = tmp_path / "sacct.txt"
    file.write_bytes(sacct(RECORD | {"Comment": "x"}).replace("\n", "\r\n").encode())

    (batch,) = Slurm(file, ReadOptions()).extract()

    assert batch.rows["comment"].to_list() == ["x"]


def test_a_later_listing_ends_a_run_that_was_running(tmp_path, store):
    for number, record in enumerate((RECORD | {"State": "RUNNING", "End": "Unknown"}, RECORD)):
        file = tmp_path / f"{number}.txt"
        file.write_text(sacct(record))
        ingest(store, "slurm", [file], ReadOptions())

    assert store.read("select state from raw.job_runs")["state"].to_list() == ["COMPLETED"]


def test_the_zone_is_part_of_what_was_read(tmp_path):
    text = sacct(RECORD)

    digests = {
        read(tmp_path, text, zone=ZoneInfo(zone))["job_runs"].digest
        for zone in ("UTC", "Europe/Berlin")
    }

    assert len(digests) == 2


@settings(max_examples=60, deadline=None)
@given(
    fields=st.dictionaries(
        st.sampled_from([*RECORD, "Suspended", "Timelimit", "Comment", "Restarts"]),
        st.text(max_size=30).map(lambda t: t.replace("\n", " ").replace("\r", " ")),
    )
)
def test_any_text_in_any_field_is_kept_or_rejected(fields, tmp_path_factory):
    text = sacct(RECORD | fields).replace("\ud800", "")
    folder = tmp_path_factory.mktemp("fields")

    try:
        batches = read(folder, text, cluster="lab", zone=ZoneInfo("UTC"))
    except IngestError as error:
        assert "not a text of Slurm" in str(error)  # noqa: PT017 -- the only file-wide fault left
        return

    assert sum(b.rows.height + len(b.rejects) for b in batches.values()) == 1


def test_short_texts_that_stand_for_many_nodes_fill_no_memory(tmp_path, monkeypatch):
    """The first text in order that goes beyond what a part may name is rejected, for all rows."""
    monkeypatch.setattr(node_lists, "HOSTS_PER_PART_MAX", 100)
    lists = ("a[1-40]", "b[1-40]", "b[1-40]", "c[1-30]", "d[1-30]", "plain")
    records = [RECORD | {"JobIDRaw": str(n), "NodeList": text} for n, text in enumerate(lists)]

    found = read(tmp_path, sacct(*records))["job_runs"]

    assert found.rows["nodes"].list.len().to_list() == [40, 30, 30, 1]
    assert [reject.line for reject in found.rejects] == [3, 4]
    assert all("too many hosts" in reject.reason for reject in found.rejects)
