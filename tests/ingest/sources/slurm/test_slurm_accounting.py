"""What `sacct` prints, as text and as JSON: fields, which rows are rejected, nodes of lists."""

import contextlib
import json
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.ingest.golden_cases import golden_path
from tests.tables import each

from goodput_ingest.formats import delimited, hostlist
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.registry import recognise
from goodput_ingest.sources.slurm import node_lists, texts
from goodput_ingest.sources.slurm.texts import Slurm
from goodput_queries.errors import IngestError

SEPARATOR = "\x1f"
FILE = golden_path("slurm/every_field_of_sacct_and_what_rejects_it/input.txt")
NAMES, VALUES = (line.split(SEPARATOR) for line in FILE.read_text().splitlines()[:2])
RECORD = dict(zip(NAMES, VALUES, strict=True)) | {"JobID": "7", "JobIDRaw": "7"}


def sacct(*records, separator=SEPARATOR, end=""):
    """Return what `sacct -P` prints for these records; the first one's fields are the header."""
    lines = [records[0], *(record.values() for record in records)]
    return "".join(separator.join(line) + end + "\n" for line in lines)


def read(folder, text, **options):
    """Return the batches by table of a file with this text."""
    file = folder / "sacct.txt"
    file.write_text(text, encoding="utf-8", errors="surrogateescape")
    return {batch.table: batch for batch in Slurm(file, ReadOptions(**options)).extract()}


@pytest.mark.parametrize("separator", ["\x1f", "|", "\t", ";", "^^", "¦"])
@pytest.mark.parametrize("ends", [0, 1])
def test_the_header_says_the_delimiter(tmp_path, separator, ends):
    """Any delimiter does, and one at the end of every line (`sacct -p`) as well."""
    batch = read(tmp_path, sacct(RECORD, separator=separator, end=ends * separator))["job_runs"]

    assert batch.rows["nodes"].to_list() == [["node001", "node002"]]
    assert batch.rows["db_index"].to_list() == [2798573628995141632]
    assert not batch.rejects


@pytest.mark.parametrize("name", ["State", "Submit", "Start", "End"])
def test_a_header_without_a_needed_field_is_refused(tmp_path, name):
    record = {key: value for key, value in RECORD.items() if key != name}
    with pytest.raises(IngestError, match=name if name != "State" else "not a text of Slurm"):
        read(tmp_path, sacct(record))


def test_the_zone_is_part_of_what_was_read(tmp_path):
    utc, berlin = (
        read(tmp_path, sacct(RECORD), zone=ZoneInfo(zone))["job_runs"].digest
        for zone in ("UTC", "Europe/Berlin")
    )

    assert utc != berlin


def test_short_texts_that_stand_for_many_nodes_fill_no_memory(tmp_path, monkeypatch):
    """The first text in order that goes beyond what a part may name is rejected, for all rows."""
    monkeypatch.setattr(node_lists, "HOSTS_PER_PART_MAX", 100)
    lists = ("a[1-40]", "b[1-40]", "b[1-40]", "c[1-30]", "d[1-30]", "plain")
    records = [RECORD | {"JobIDRaw": str(n), "NodeList": text} for n, text in enumerate(lists)]

    found = read(tmp_path, sacct(*records))["job_runs"]

    assert found.rows["nodes"].list.len().to_list() == [40, 30, 30, 1]
    assert [reject.line for reject in found.rejects] == [3, 4]
    assert all("too many hosts" in reject.reason for reject in found.rejects)


def test_row_groups_are_written_two_at_once_and_kept_before_a_refusal(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "LINES_PER_BLOCK", 2)
    file = tmp_path / "file"

    def batches(*clusters):  # of a job in each
        rows = [f"{name}|{n}|COMPLETED|10{n}|11{n}|12{n}\n" for n, name in enumerate(clusters, 1)]
        file.write_text("Cluster|JobIDRaw|State|Submit|Start|End\n" + "".join(rows))
        return Slurm(file, ReadOptions()).extract()

    before, after = list(batches(*["lab"] * 7)), list(batches(*["lab"] * 8))
    refused = batches("lab", "lab", "lab", "")

    assert [batch.rows["job_id_raw"].to_list() for batch in before] == [list("1234"), list("567")]
    assert [batch.rows["job_id_raw"].to_list() for batch in after] == [list("1234"), list("5678")]
    assert [one.digest == other.digest for one, other in zip(before, after, strict=True)] == [
        True, False,
    ]  # fmt: skip
    assert next(refused).rows["job_id_raw"].to_list() == ["1", "2"]
    with pytest.raises(IngestError, match="do not name their cluster"):
        next(refused)


@each("n[0-1000000]", "n[0-999999999999999999]", "a[1-1001]b[1-1000]", "n[1-999999],a,b")
def test_more_hosts_than_the_limit_are_refused_without_being_made(text):
    with pytest.raises(hostlist.HostlistError, match="too many hosts"):
        hostlist.expand(text)


@given(st.text(alphabet="n0123456789[],-", max_size=30))
def test_any_text_gives_names_or_a_stated_error(text):
    try:
        names = hostlist.expand(text, limit=1_000)
    except hostlist.HostlistError:
        return
    assert len(names) <= 1_000
    assert not any(set("[],") & set(name) for name in names)


PREFIXES = st.sampled_from(["n", "gpu-a", "7", "rack1.node", "-", ""])
NUMBERS = st.integers(0, 130)


@st.composite
def node_texts(draw):
    """Return one node, a range or several; widths differ and some ranges run backwards."""
    low, high, width = draw(NUMBERS), draw(NUMBERS), draw(st.integers(1, 4))
    written = f"{low:0{width}d}-{high:0{draw(st.integers(1, 4))}d}"
    more = draw(st.sampled_from(["", ",150", ",150-151"]))
    end = draw(st.sampled_from(["", "-ib", ",other", "]"]))
    return f"{draw(PREFIXES)}[{written}{more}]{end}"


@given(st.lists(node_texts() | st.sampled_from(["node7", "", "None assigned", "a,b"]) | st.none()))
@example(["n[08-11]", "n[8-11]", "n[1-1]", "n[2-1]"])
@example(["n[0-999999999]"])
def test_rows_have_the_nodes_that_their_lists_stand_for(lists):
    rows = pl.DataFrame({"NodeList": lists}, schema={"NodeList": pl.String})

    found, problem = node_lists.with_nodes(rows)

    expected = [None] * len(lists)
    for place, text in enumerate(lists):
        with contextlib.suppress(hostlist.HostlistError):
            expected[place] = None if text is None else hostlist.expand(text)
    assert found["nodes"].to_list() == expected
    both = zip(lists, expected, strict=True)
    is_wrong = [text is not None and nodes is None for text, nodes in both]
    assert found.select(problem.is_not_null()).to_series().to_list() == is_wrong


START, END = "2026-11-20T11:42:54", "2026-11-20T11:45:09"
LISTED = (
    f"Cluster|Name|TRES|TimeStart|TimeEnd|UnusedWall\nlab|w|cpu=16|{START}|{END}|0.0\n",
    f"ReservationName=w StartTime={START} EndTime={END} Nodes=node001 Flags=MAINT\n",
)


@pytest.mark.parametrize("texts", [LISTED, LISTED[::-1]], ids=["the last", "the first"])
def test_the_listing_that_says_the_nodes_wins(read_text, store, texts):
    for text in texts:
        read_text("slurm", text, cluster="lab", zone=ZoneInfo("UTC"))
    assert store.read("select nodes from raw.reservations").rows() == [(["node001"],)]


JOB = json.loads(golden_path("slurm/every_field_of_sacct_json/input.txt").read_text())["jobs"][0]


def read_json(folder, **document):
    """Return the batches of job runs of what `sacct --json` prints."""
    file = folder / "listing.json"
    file.write_text(json.dumps({"meta": {"plugin": {"type": "openapi/dbv0.0.38"}}, **document}))
    assert recognise(file) is Slurm
    batches = Slurm(file, ReadOptions(cluster="lab")).extract()
    return [batch for batch in batches if batch.table == "job_runs"]


def test_a_listing_of_errors_alone_is_refused_and_a_time_without_jobs_is_no_error(tmp_path):
    """`sacct --json` of 22.05 ends well when it could not ask; only its text shows it."""
    said = {"description": "Unable to parse time format", "error_number": 9000}
    idle = {"description": "Nothing found", "error_number": 9003, "source": "slurmdb_jobs_get"}

    with pytest.raises(IngestError, match="the command failed: Unable to parse time format"):
        read_json(tmp_path, errors=[said])
    (found,) = read_json(tmp_path, errors=[idle], jobs=[])
    assert (found.rows.height, found.rejects) == (0, [])


def test_a_long_listing_comes_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(texts, "RECORDS_PER_PART", 2)

    batches = read_json(tmp_path, jobs=[JOB | {"job_id": n} for n in range(1, 6)])

    assert [batch.rows.height for batch in batches] == [2, 2, 1]
    assert len({batch.digest for batch in batches}) == 3


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(sorted(JOB.keys() - {"steps"})), ANYTHING)
def test_a_field_of_any_kind_gives_a_row_or_a_reject(tmp_path_factory, field, value):
    batches = read_json(tmp_path_factory.mktemp("json"), jobs=[JOB, JOB | {field: value}])
    assert sum(len(batch.rejects) + batch.rows.height for batch in batches) == 2
