"""Events and reservations: intervals of nodes and of the cluster."""

from zoneinfo import ZoneInfo

import pytest

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions

UTC_ZONE = ZoneInfo("UTC")
START, END = "2026-11-20T11:42:54", "2026-11-20T11:45:09"


@pytest.mark.parametrize("is_reversed", [False, True])
def test_the_listing_that_says_the_nodes_wins(tmp_path, store, *, is_reversed):
    texts = [
        f"Cluster|Name|TRES|TimeStart|TimeEnd|UnusedWall\nlab|w|cpu=16|{START}|{END}|0.0\n",
        f"ReservationName=w StartTime={START} EndTime={END} Nodes=node001 Flags=MAINT\n",
    ]
    for number, text in enumerate(reversed(texts) if is_reversed else texts):
        file = tmp_path / f"{number}.txt"
        file.write_text(text)
        ingest(store, "slurm", [file], ReadOptions(cluster="lab", zone=UTC_ZONE))

    assert store.read("select nodes from raw.reservations").rows() == [(["node001"],)]
