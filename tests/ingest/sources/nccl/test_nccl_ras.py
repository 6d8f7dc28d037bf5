# ruff: noqa: DTZ001 -- moments are stored naive, in UTC
from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest

from goodput_ingest.formats import files
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.nccl.ras import NcclRas
from goodput_queries.errors import IngestError

if TYPE_CHECKING:
    from pathlib import Path

    from goodput_queries.evidence.batch import Loaded
    from goodput_queries.storage.store import LocalStore

Fields = dict[str, Any]
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


def rank(number: int, launched: int, **status: object) -> Fields:
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


def missing(number: int, **status: bool) -> Fields:
    fields = {"unresponsive": False, "considered_dead": False, **status}
    place = {"host": "192.0.2.2", "pid": 1747 + number, "cuda_dev": 0, "nvml_dev": number}
    return {"rank": number, **place, "status": fields}


def answer(*ranks: Fields, missing_ranks: tuple[Fields, ...] = (), **fields: object) -> Fields:
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


def asked(reply: Fields | str, at_s: float = ASKED_S) -> str:
    return json.dumps({"t": at_s, "took_s": 0.001, "format": "json", "reply": reply}) + "\n"


def read(
    store: LocalStore, folder: Path, content: str, options: ReadOptions | None = None
) -> list[Loaded]:
    path = folder / "ras.log"
    path.write_text(content)
    assert NcclRas.recognises(path, files.head(path))
    source = NcclRas(path, options or ReadOptions())
    return [store.load(batch) for batch in source.extract()]


def counts(store: LocalStore) -> list[tuple[object, ...]]:
    columns = "operation, launched, rank_count, ranks"
    return store.read(f"select {columns} from raw.comm_counts order by 1, 2").rows()


def states(store: LocalStore) -> list[tuple[object, ...]]:
    columns = "state, rank_count, ranks"
    return store.read(f"select {columns} from raw.comm_states order by all").rows()


def reasons(store: LocalStore) -> list[tuple[object, ...]]:
    return store.read("select line, reason from raw.rejects order by all").rows()


def test_ranks_are_grouped_by_how_many_operations_they_launched(
    store: LocalStore, tmp_path: Path
) -> None:
    read(store, tmp_path, asked(answer(rank(0, 40), rank(1, 39), rank(2, 40))))

    assert counts(store) == [
        ("AllReduce", 39, 1, [1]),
        ("AllReduce", 40, 2, [0, 2]),
        ("Broadcast", 4, 3, [0, 1, 2]),
    ]
    comm = store.read("select distinct comm_id, comm_ranks, ts from raw.comm_counts").row(0)
    assert comm == (HASH, 3, ASKED_AT)


def test_a_rank_that_launched_none_of_what_others_did_has_a_count_of_zero(
    store: LocalStore, tmp_path: Path
) -> None:
    read(store, tmp_path, asked(answer(rank(0, 1), rank(1, 0))))

    assert ("AllReduce", 0, 1, [1]) in counts(store)
    assert not [row for row in counts(store) if row[0] == "Reduce"]  # nobody launched one


def test_the_rank_map_has_process_and_gpu_of_every_rank(store: LocalStore, tmp_path: Path) -> None:
    dead = missing(1, considered_dead=True)

    read(store, tmp_path, asked(answer(rank(0, 40), missing_ranks=(dead,))))

    columns = "comm_id, rank, ranks, node, pid, gpu_index, seen_at"
    assert store.read(f"select {columns} from raw.rank_map order by rank").rows() == [
        (HASH, 0, 2, "192.0.2.2", 1747, 0, ASKED_AT),
        (HASH, 1, 2, "192.0.2.2", 1748, 1, ASKED_AT),
    ]


def test_states_are_named_as_the_text_names_them(store: LocalStore, tmp_path: Path) -> None:
    ranks = (
        rank(0, 1),
        rank(1, 1, init_state=7),
        rank(2, 1, abort_flag=True),
        rank(3, 1, finalize_called=True),
        rank(4, 1, async_error=6),
    )
    gone = (missing(5), missing(6, unresponsive=True), missing(7, considered_dead=True))

    read(store, tmp_path, asked(answer(*ranks, missing_ranks=gone)))

    assert [(state, found) for state, _, found in states(store)] == [
        ("ABORT", [2]),
        ("DEAD", [7]),
        ("ERROR", [4]),
        ("FINALIZE", [3]),
        ("INIT", [1]),
        ("NOCOMM", [5]),
        ("RUNNING", [0]),
        ("SILENT", [6]),
    ]


def test_the_comma_that_nccl_2_28_forgets_is_put_back(store: LocalStore, tmp_path: Path) -> None:
    whole = json.dumps(answer(rank(1, 39), missing_ranks=(missing(0),)), indent=2)
    broken = whole.replace('"nvml_dev": 0,', '"nvml_dev": 0', 1)
    assert broken != whole

    read(store, tmp_path, asked(broken))

    assert states(store) == [("NOCOMM", 1, [0]), ("RUNNING", 1, [1])]
    assert reasons(store) == []


def test_the_text_names_the_rank_that_is_behind(store: LocalStore, tmp_path: Path) -> None:
    read(store, tmp_path, asked(TEXT + BEHIND))

    assert counts(store) == [("AllReduce", 39, 1, [1]), ("AllReduce", 40, 3, None)]
    columns = "comm_id, rank, node, pid, gpu_index"
    # the GPU in the text is CUDA's number in the process: not the node's
    assert store.read(f"select {columns} from raw.rank_map").rows() == [
        (HASH, 1, "192.0.2.2", 1748, None)
    ]


def test_the_text_may_name_the_ranks_ahead_on_lines_of_their_own(
    store: LocalStore, tmp_path: Path
) -> None:
    ahead = """\
#0-0 (00a93daea854b060) MISMATCH
  Communicator ranks have different AllGather operation counts
  30 ranks have launched up to operation 640
  2 ranks have launched up to operation 641
  Rank 12 -- GPU 4 managed by process 323032 on node 192.0.2.124
  Rank 13 -- GPU 5 managed by process 323033 on node 192.0.2.124
"""
    read(store, tmp_path, asked(TEXT + ahead))

    assert counts(store) == [("AllGather", 640, 30, None), ("AllGather", 641, 2, [12, 13])]
    found = store.read("select distinct comm_id, comm_ranks from raw.comm_counts").row(0)
    assert found == ("0xa93daea854b060", 32)  # without leading zeros, as in JSON


def test_states_and_silent_ranks_of_the_text_are_read(store: LocalStore, tmp_path: Path) -> None:
    text = """\
#0-0 (6e279b23072b2176) INCOMPLETE
  Missing communicator data from 1 rank
  Rank 3 -- GPU 3 managed by process 1750 on node 192.0.2.2

#0-0 (6e279b23072b2176) MISMATCH
  Communicator ranks have different status
  2 ranks have status NOCOMM
  Rank 1 has status RUNNING -- GPU 1 managed by process 1748 on node 192.0.2.2
"""
    read(store, tmp_path, asked(TEXT + text))

    assert states(store) == [("NOCOMM", 2, None), ("RUNNING", 1, [1]), ("SILENT", 1, [3])]


def test_answers_in_json_follow_each_other_in_local_time(store: LocalStore, tmp_path: Path) -> None:
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
def test_an_answer_without_a_time_in_utc_asks_for_it(
    store: LocalStore, tmp_path: Path, content: str, needed: str
) -> None:
    with pytest.raises(IngestError, match=needed):
        read(store, tmp_path, content)

    read(store, tmp_path, content, ReadOptions(observed_at=ASKED_AT))
    assert store.read("select distinct ts from raw.comm_counts").item() == ASKED_AT


@pytest.mark.parametrize(
    "broken",
    [
        {"communicators": 5},
        {"communicators": [{"hash": "x"}]},
        answer({"rank": 0}),
        answer(rank(0, -4)),
        answer({**rank(0, 1), "status": [1]}),
        5,
        None,
    ],
)
def test_an_answer_that_is_none_is_rejected_and_the_next_is_read(
    store: LocalStore, tmp_path: Path, broken: Any
) -> None:
    good = asked(answer(rank(0, 1)))

    read(
        store, tmp_path, good + asked(broken, ASKED_S + 3) + asked(answer(rank(0, 2)), ASKED_S + 6)
    )

    assert [line for line, _ in reasons(store)] == [2]
    assert [launched for name, launched, *_ in counts(store) if name == "AllReduce"] == [1, 2]


def test_a_grown_file_gives_only_what_is_new(store: LocalStore, tmp_path: Path) -> None:
    first = asked(answer(rank(0, 1)))
    read(store, tmp_path, first)
    again = read(store, tmp_path, first)
    grown = read(store, tmp_path, first + asked(answer(rank(0, 2)), ASKED_S + 3))

    assert [part.rows_new for part in again] == [0, 0, 0]
    assert [part.rows_new for part in grown] == [2, 1, 0]  # the map is the same, seen later


def test_a_map_that_knows_the_gpu_outlives_a_later_one_that_does_not(
    store: LocalStore, tmp_path: Path
) -> None:
    read(store, tmp_path, asked(answer(rank(1, 39))))
    read(store, tmp_path, asked(TEXT + BEHIND, ASKED_S + 60))

    assert store.read("select gpu_index from raw.rank_map").item() == 1
