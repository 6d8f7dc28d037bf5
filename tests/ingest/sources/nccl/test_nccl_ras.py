# ruff: noqa: DTZ001 -- moments are stored naive, in UTC
import json
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from goodput_ingest.formats import files
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.nccl.ras import NcclRas
from goodput_queries.errors import IngestError

ASKED_S = 1795178036.5
ASKED_AT = datetime(2026, 11, 20, 12, 33, 56, 500000)
HASH = "0x6e279b23072b2176"
TEXT = """\
NCCL version 2.28.9 compiled with CUDA 13.0
CUDA runtime version 13000, driver version 13000

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      1          4            1          4        4

Communicators... (0.001s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         1         4         4         4   RUNNING  MISMATCH

Errors
======

Warnings
========

"""
BEHIND = """\
#0-0 (6e279b23072b2176) MISMATCH
  Communicator ranks have different AllReduce operation counts
  3 ranks have launched up to operation 40
  Rank 1 has launched up to operation 39 -- GPU 1 managed by process 1748 on node 192.0.2.2
"""


def rank(number, launched, **status):
    return {
        "rank": number,
        "host": "192.0.2.2",
        "pid": 1747 + number,
        "cuda_dev": 0,
        "nvml_dev": number,
        "status": {
            "init_state": 0,
            "async_error": 0,
            "finalize_called": False,
            "destroy_flag": False,
            "abort_flag": False,
            **status,
        },
        "collective_counts": {"Broadcast": 4, "Reduce": 0, "AllReduce": launched},
    }


def answer(*ranks, missing_ranks=(), **fields):
    communicator = {
        "hash": HASH,
        "size": len(ranks) + len(missing_ranks),
        "ranks": list(ranks),
        "missing_ranks": list(missing_ranks),
        **fields,
    }
    return {
        "nccl_version": "2.28.9",
        "timestamp": "2026-11-20 12:33:56",
        "communicators_count": 1,
        "communicators": [communicator],
    }


def asked(reply, at_s=ASKED_S):
    return json.dumps({"t": at_s, "took_s": 0.001, "format": "json", "reply": reply}) + "\n"


def read(store, folder, content, options=None):
    path = folder / "ras.log"
    path.write_text(content)
    assert NcclRas.recognises(path, files.head(path))
    source = NcclRas(path, options or ReadOptions())
    return [store.load(batch) for batch in source.extract()]


def test_answers_in_json_follow_each_other_in_local_time(store, tmp_path):
    content = json.dumps(answer(rank(0, 1)), indent=2) + "\n"
    later = content.replace("12:33:56", "12:34:56")

    read(store, tmp_path, content + later, ReadOptions(zone=ZoneInfo("Europe/Berlin")))

    assert store.read("select distinct ts from raw.comm_states order by 1").rows() == [
        (datetime(2026, 11, 20, 11, 33, 56),),
        (datetime(2026, 11, 20, 11, 34, 56),),
    ]


@pytest.mark.parametrize(
    ("content", "needed"),
    [(TEXT + BEHIND, "--observed-at"), (json.dumps(answer(rank(0, 1))), "--timezone")],
)
def test_an_answer_without_a_time_in_utc_asks_for_it(store, tmp_path, content, needed):
    with pytest.raises(IngestError, match=needed):
        read(store, tmp_path, content)

    read(store, tmp_path, content, ReadOptions(observed_at=ASKED_AT))
    assert store.read("select distinct ts from raw.comm_counts").item() == ASKED_AT


def test_a_map_that_knows_the_gpu_outlives_a_later_one_that_does_not(store, tmp_path):
    read(store, tmp_path, asked(answer(rank(1, 39))))
    read(store, tmp_path, asked(TEXT + BEHIND, ASKED_S + 60))

    assert store.read("select gpu_index from raw.rank_map").item() == 1
