"""Listings that Slurm's commands print with `--json`."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ingest.golden_cases import GOLDEN

from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.registry import recognise
from goodput_ingest.sources.slurm import texts
from goodput_ingest.sources.slurm.texts import Slurm
from goodput_queries.errors import IngestError

FILE = GOLDEN / "slurm/every_field_of_sacct_json/input.txt"
RECORD = json.loads(FILE.read_text())["jobs"][0]


def read(folder, document, **options):
    file = folder / "listing.json"
    file.write_text(document if isinstance(document, str) else json.dumps(document))
    assert recognise(file) is Slurm
    return {batch.table: batch for batch in Slurm(file, ReadOptions(**options)).extract()}


ERRORS = {"meta": {"plugin": {"type": "openapi/dbv0.0.38"}}}


def test_a_listing_of_errors_alone_is_refused_and_a_time_without_jobs_is_no_error(tmp_path):
    """`sacct --json` of 22.05 ends well when it could not ask; only its text shows it."""
    said = {"description": "Unable to parse time format", "error_number": 9000}
    idle = {"description": "Nothing found", "error_number": 9003, "source": "slurmdb_jobs_get"}

    with pytest.raises(IngestError, match="the command failed: Unable to parse time format"):
        read(tmp_path, ERRORS | {"errors": [said]})
    found = read(tmp_path, ERRORS | {"errors": [idle], "jobs": []})["job_runs"]
    assert (found.rows.height, found.rejects) == (0, [])


def test_a_long_listing_comes_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(texts, "RECORDS_PER_PART", 2)
    file = tmp_path / "listing.json"
    file.write_text(json.dumps({"jobs": [RECORD | {"job_id": n} for n in range(1, 6)], "meta": {}}))

    batches = list(Slurm(file, ReadOptions()).extract())

    assert [batch.rows.height for batch in batches] == [2, 2, 1]
    assert len({batch.digest for batch in batches}) == 3


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(sorted(RECORD.keys() - {"steps"})), JSON)
def test_a_field_of_any_kind_gives_a_row_or_a_reject(tmp_path_factory, field, value):
    file = tmp_path_factory.mktemp("json") / "listing.json"
    file.write_text(json.dumps({"jobs": [RECORD, RECORD | {field: value}], "meta": {}}))

    batches = list(Slurm(file, ReadOptions(cluster="lab")).extract())

    assert sum(len(b.rejects) + b.rows.height for b in batches if b.table == "job_runs") == 2
