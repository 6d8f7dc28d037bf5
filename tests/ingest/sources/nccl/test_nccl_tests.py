"""Outputs of nccl-tests that are not whole, or of another program."""

import json

import pytest
from tests.ingest.golden_cases import GOLDEN

from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.nccl.nccl_tests import NcclTests
from goodput_queries.errors import IngestError

TABLE = (GOLDEN / "nccl_tests/every_form_of_a_row/input.txt").read_text()
DOCUMENT = (GOLDEN / "nccl_tests/json_of_a_run/input.json").read_text()


def extracted(folder, text):
    path = folder / "out.txt"
    path.write_text(text)
    assert NcclTests.recognises(path, text.encode())
    return list(NcclTests(path, ReadOptions()).extract())


def test_a_start_without_a_zone_is_not_known(tmp_path):
    (batch,) = extracted(tmp_path, DOCUMENT)

    assert batch.rows["started_at"].to_list() == [None, None]


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
