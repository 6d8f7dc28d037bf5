"""Texts of NCCL that are not whole, lack their time, or repeat what was read."""

import json
from datetime import datetime
from functools import partial

import pytest
from tests.ingest.golden_cases import GOLDEN

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.nccl.nccl_tests import NcclTests
from goodput_queries.errors import IngestError

TAKEN_IN = GOLDEN / "nccl_ras/answers_taken_in_by_a_collector/input.log"
ANSWER = "".join(line.partition("Z ")[2] for line in TAKEN_IN.read_text().splitlines(keepends=True))
ANSWER_JSON = (GOLDEN / "nccl_ras/json_answers_in_local_time/input.log").read_text()
ASKED_AT = datetime(2026, 11, 20, 12, 33, 56)  # noqa: DTZ001 -- moments are stored naive, in UTC


@pytest.fixture
def read_answer(read_text):
    """Return what reads the answer of RAS."""
    return partial(read_text, "nccl-ras")


@pytest.mark.parametrize(
    ("content", "needed"),
    [(ANSWER, "--observed-at"), (ANSWER_JSON, "--timezone")],
    ids=["text", "JSON"],
)
def test_an_answer_without_a_time_in_utc_asks_for_it(store, read_answer, content, needed):
    with pytest.raises(IngestError, match=needed):
        read_answer(content)

    read_answer(content, observed_at=ASKED_AT)
    assert store.read("select distinct ts from raw.comm_counts").item() == ASKED_AT


def test_a_map_that_knows_the_gpu_outlives_a_later_one_that_does_not(store, read_answer):
    known = "select rank, gpu_index from raw.rank_map where gpu_index is not null order by rank"
    read_answer(ANSWER_JSON, observed_at=ASKED_AT)
    before = store.read(known).rows()

    read_answer(ANSWER, observed_at=ASKED_AT.replace(minute=40))

    assert store.read(known).rows() == before != []


TABLE = (GOLDEN / "nccl_tests/every_form_of_a_row/input.txt").read_text()
DOCUMENT = (GOLDEN / "nccl_tests/json_of_a_run/input.json").read_text()


def extracted(folder, text):
    path = folder / "out.txt"
    path.write_text(text)
    assert NcclTests.recognises(path, text.encode())
    return list(NcclTests(path, ReadOptions()).extract())


@pytest.mark.parametrize(
    "text",
    [
        DOCUMENT[:-20],
        json.dumps(
            json.loads(DOCUMENT) | {"results": [{"size": "x", "out_of_place": {"bus_bw": 1}}]}
        ),
        "".join(line + "\n" for line in TABLE.splitlines() if line.startswith("#")),
    ],
    ids=["cut", "without a number", "a header alone"],
)
def test_an_output_without_a_result_is_refused(tmp_path, text):
    with pytest.raises(IngestError, match="nccl-tests"):
        extracted(tmp_path, text)


INSPECTOR = (GOLDEN / "nccl_inspector/every_form_of_a_record/input.log").read_text()
RECORD = json.loads(INSPECTOR.partition("\n")[0])


def line(**coll):
    return RECORD | {"coll_perf": RECORD["coll_perf"] | coll}


def build_of(store, folder, records):
    path = folder / "vm-pid20896.log"
    path.write_text("".join(json.dumps(r, separators=(",", ":")) + "\n" for r in records))
    ingest(store, "nccl-inspector", [path], ReadOptions())
    store.build()


def test_numbers_that_are_missing_are_reported(whole_store, tmp_path):
    """They are the only word of what rings and samples lost; what comes twice counts once."""
    dumped_us = RECORD["metadata"]["dump_timestamp_us"]
    later = {"metadata": RECORD["metadata"] | {"dump_timestamp_us": dumped_us + 5}}
    records = [*(line(coll_sn=n) for n in (3, 4, 9)), line(coll_sn=9) | later]
    build_of(whole_store, tmp_path, records)

    ((n, what, example),) = whole_store.read(
        "select n, what, example from marts.data_quality where kind = 'collectives not recorded'"
    ).rows()
    assert n == 4
    assert "42.9 % of them" in what
    assert example == "AllReduce of dp, rank 2 on vm: 3 of 7"


def test_where_no_number_is_missing_nothing_is_reported(whole_store, tmp_path):
    records = [*(line(coll_sn=n) for n in (3, 4, 5)), line(coll="AllGather")]
    build_of(whole_store, tmp_path, records)

    found = whole_store.read("from marts.data_quality where kind = 'collectives not recorded'")
    assert found.is_empty()
