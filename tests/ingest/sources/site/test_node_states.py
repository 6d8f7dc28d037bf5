"""Node states that a site writes."""

from datetime import datetime

from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.site.node_states import NodeStates

HEADER = "node,state,start,end,reason\n"


def states(folder, rows):
    file = folder / "states.csv"
    file.write_text(HEADER + rows)
    (batch,) = NodeStates(file, ReadOptions(cluster="east")).extract()
    return batch


def test_a_node_stays_down_while_one_of_the_faults_that_began_together_is_open(tmp_path):
    batch = states(
        tmp_path,
        "a,down,2026-11-02T04:00:00Z,2026-11-02T05:00:00Z,fan\n"
        "a,down,2026-11-02T04:00:00Z,,cable\n",
    )

    assert batch.rows.select("start_at", "end_at", "reason").rows() == [
        (datetime(2026, 11, 2, 4), None, "fan; cable")  # noqa: DTZ001 -- naive UTC
    ]
