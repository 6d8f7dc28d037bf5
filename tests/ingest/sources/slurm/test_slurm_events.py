"""Events and reservations: intervals of nodes and of the cluster."""

from zoneinfo import ZoneInfo

import pytest

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.slurm.events import (
    parse_events,
    parse_reservation_rows,
    parse_reservations,
)
from goodput_queries.errors import IngestError

UTC_ZONE = ZoneInfo("UTC")
EVENTS = "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User\n"
START, END = "2026-11-20T11:42:54", "2026-11-20T11:45:09"


def events(*rows):
    (parsed,) = parse_events(EVENTS + "\n".join(rows), cluster=None, zone=UTC_ZONE)
    return parsed


@pytest.mark.parametrize(
    ("name", "printed", "node", "state"),
    [
        ("node003", "DOWN*", "node003", "down"),
        ("node003", "DRAIN", "node003", "drained"),
        ("node003", "MAINT", "node003", "maintenance"),
        ("node003", "IDLE+POWERED_DOWN", "node003", "powered_off"),
        ("node003", "DOWN+DRAIN", "node003", "down"),
        ("", "", "*", "up"),  # a registration: the whole cluster was watched
    ],
)
def test_an_event_is_a_state_of_its_node_or_of_all(name, printed, node, state):
    parsed = events(f"lab|{name}|{START}|{END}|{printed}|Xid 79|slurm(64030)")

    assert parsed.rows.select("cluster", "node", "state", "user_name").rows() == [
        ("lab", node, state, "slurm")
    ]


def test_an_event_that_is_not_over_has_no_end():
    parsed = events(f"lab|node003|{START}|Unknown|DOWN|x|root(0)")

    assert parsed.rows["end_at"].to_list() == [None]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (f"lab|node003|Unknown|{END}|DOWN|x|root(0)", "it has no start"),
        (f"lab|node003|{END}|{START}|DOWN|x|root(0)", "it ends before it starts"),
        (f"lab|node003|{START}|{END}|SIDEWAYS|x|root(0)", "'SIDEWAYS' is no node state"),
        (f"lab|node003|{START}|{END}|DOWN|a|b|root(0)", "has 8 fields, expected 7"),
    ],
)
def test_an_event_that_cannot_be_used_is_rejected(row, expected):
    parsed = events(row)

    assert parsed.rows.is_empty()
    assert expected in parsed.rejects[0].reason
    assert parsed.rejects[0].line == 2


def test_events_in_local_time_need_a_zone():
    with pytest.raises(IngestError, match="--timezone"):
        parse_events(EVENTS + f"lab||{START}|{END}||r|", cluster=None, zone=None)


def test_a_reservation_of_the_accounting_does_not_say_its_nodes():
    text = f"Cluster|Name|TRES|TimeStart|TimeEnd|UnusedWall\nlab|w|cpu=16|{START}|{END}|0.0\n"

    (parsed,) = parse_reservation_rows(text, cluster=None, zone=UTC_ZONE)

    assert parsed.rows.select("cluster", "name", "nodes").rows() == [("lab", "w", None)]


def test_a_reservation_of_the_controller_says_nodes_owners_and_flags():
    text = (
        f"ReservationName=w StartTime={START} EndTime={END} Duration=00:05:00 "
        "Nodes=node[001-002] NodeCnt=2 Flags=MAINT,SPEC_NODES TRES=cpu=16\n"
        "   Users=alice,bob Accounts=(null) State=ACTIVE\n"
    )

    (parsed,) = parse_reservations(text, cluster="lab", zone=UTC_ZONE)

    assert parsed.rows.select("nodes", "owner", "flags").rows() == [
        (["node001", "node002"], "alice,bob", "MAINT,SPEC_NODES")
    ]


def test_a_reservation_with_a_field_twice_is_rejected():
    text = f"ReservationName=w StartTime={START} EndTime={END} Nodes=a Comment=x Nodes=b"

    (parsed,) = parse_reservations(text, cluster="lab", zone=UTC_ZONE)

    assert parsed.rows.is_empty()
    assert "a field appears twice" in parsed.rejects[0].reason


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
