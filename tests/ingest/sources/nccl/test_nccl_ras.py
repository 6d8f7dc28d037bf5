"""Answers of NCCL RAS whose time is not known, and maps of ranks that come one after the other."""

from datetime import datetime

import pytest
from tests.ingest.golden_cases import GOLDEN

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries.errors import IngestError

TAKEN_IN = GOLDEN / "nccl_ras/answers_taken_in_by_a_collector/input.log"
TEXT = "".join(line.partition("Z ")[2] for line in TAKEN_IN.read_text().splitlines(keepends=True))
JSON = (GOLDEN / "nccl_ras/json_answers_in_local_time/input.log").read_text()
ASKED_AT = datetime(2026, 11, 20, 12, 33, 56)  # noqa: DTZ001 -- moments are stored naive, in UTC


def read(store, folder, content, **options):
    path = folder / "ras.log"
    path.write_text(content)
    return ingest(store, "nccl-ras", [path], ReadOptions(**options))


@pytest.mark.parametrize(
    ("content", "needed"), [(TEXT, "--observed-at"), (JSON, "--timezone")], ids=["text", "JSON"]
)
def test_an_answer_without_a_time_in_utc_asks_for_it(store, tmp_path, content, needed):
    with pytest.raises(IngestError, match=needed):
        read(store, tmp_path, content)

    read(store, tmp_path, content, observed_at=ASKED_AT)
    assert store.read("select distinct ts from raw.comm_counts").item() == ASKED_AT


def test_a_map_that_knows_the_gpu_outlives_a_later_one_that_does_not(store, tmp_path):
    known = "select rank, gpu_index from raw.rank_map where gpu_index is not null order by rank"
    read(store, tmp_path, JSON, observed_at=ASKED_AT)
    before = store.read(known).rows()

    read(store, tmp_path, TEXT, observed_at=ASKED_AT.replace(minute=40))

    assert store.read(known).rows() == before != []
