"""Texts of NCCL that are not whole, lack their time, or repeat what was read."""

import json
from datetime import datetime

import pytest
from tests.ingest.golden_cases import golden_path
from tests.tables import each

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.nccl.nccl_tests import NcclTests
from goodput_queries.errors import IngestError

TAKEN_IN = golden_path("nccl_ras/answers_taken_in_by_a_collector/input.log")
ANSWER = "".join(line.partition("Z ")[2] for line in TAKEN_IN.read_text().splitlines(keepends=True))
ANSWER_JSON = golden_path("nccl_ras/json_answers_in_local_time/input.log").read_text()
ASKED_AT = datetime(2026, 11, 20, 12, 33, 56)  # noqa: DTZ001 -- moments are stored naive, in UTC


@each({"text": (ANSWER, "--observed-at"), "JSON": (ANSWER_JSON, "--timezone")})
def test_an_answer_without_a_time_in_utc_asks_for_it(store, read_text, content, needed):
    with pytest.raises(IngestError, match=needed):
        read_text("nccl-ras", content)
    read_text("nccl-ras", content, observed_at=ASKED_AT)
    assert store.read("select distinct ts from raw.comm_counts").item() == ASKED_AT


def test_a_map_that_knows_the_gpu_outlives_a_later_one_that_does_not(store, read_text):
    known = "select rank, gpu_index from raw.rank_map where gpu_index is not null order by rank"
    read_text("nccl-ras", ANSWER_JSON, observed_at=ASKED_AT)
    before = store.read(known).rows()

    read_text("nccl-ras", ANSWER, observed_at=ASKED_AT.replace(minute=40))

    assert store.read(known).rows() == before != []


TABLE = golden_path("nccl_tests/every_form_of_a_row/input.txt").read_text()
DOCUMENT = golden_path("nccl_tests/json_of_a_run/input.json").read_text()
WITHOUT = {"results": [{"size": "x", "out_of_place": {"bus_bw": 1}}]}


@each({
    "cut": DOCUMENT[:-20],
    "without a number": json.dumps(json.loads(DOCUMENT) | WITHOUT),
    "a header alone": "".join(f"{line}\n" for line in TABLE.splitlines() if line.startswith("#")),
})  # fmt: skip
def test_an_output_without_a_result_is_refused(tmp_path, text):
    path = tmp_path / "out.txt"
    path.write_text(text)
    assert NcclTests.recognises(path, text.encode())

    with pytest.raises(IngestError, match="nccl-tests"):
        list(NcclTests(path, ReadOptions()).extract())


INSPECTOR = golden_path("nccl_inspector/every_form_of_a_record/input.log").read_text()
RECORD = json.loads(INSPECTOR.partition("\n")[0])


def line(**coll):
    return RECORD | {"coll_perf": RECORD["coll_perf"] | coll}


DUMPED_US = RECORD["metadata"]["dump_timestamp_us"]
LATER = {"metadata": RECORD["metadata"] | {"dump_timestamp_us": DUMPED_US + 5}}


# records; how many are missing, of which
@each({
    # they are the only word of what rings and samples lost; what comes twice counts once
    "numbers that are missing are reported": (
        [*(line(coll_sn=n) for n in (3, 4, 9)), line(coll_sn=9) | LATER],
        [(4, True, "AllReduce of dp, rank 2 on vm: 3 of 7")]),
    "where no number is missing nothing is": (
        [*(line(coll_sn=n) for n in (3, 4, 5)), line(coll="AllGather")], []),
})  # fmt: skip
def test_numbers_that_are_missing_are_reported(whole_store, tmp_path, records, expected):
    path = tmp_path / "vm-pid20896.log"
    path.write_text("".join(json.dumps(r, separators=(",", ":")) + "\n" for r in records))
    ingest(whole_store, "nccl-inspector", [path], ReadOptions())
    whole_store.build()

    columns = "n, contains(what, '42.9 % of them'), example"
    of_kind = "from marts.data_quality where kind = 'collectives not recorded'"
    assert whole_store.read(f"select {columns} {of_kind}").rows() == expected
