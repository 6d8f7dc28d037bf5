"""Records of the NCCL Inspector whose fields are not as its plugin writes them."""

import copy
import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.nccl.inspector import NcclInspector

ONLY_FIELD_BY_FIELD = b',"of a later version":NaN}'  # not JSON: typed readers refuse the line
RECORD = {
    "header": {"id": "0x9af1", "comm_name": "dp", "rank": 2, "n_ranks": 4, "nnodes": 1},
    "metadata": {
        "git_rev": "v2.30.7-1",
        "dump_timestamp_us": 1_795_175_064_709_880,
        "hostname": "vm",
        "pid": 20_896,
    },
}
FIELDS = {
    "": "AllReduce",
    "_sn": 0,
    "_msg_size_bytes": 100_000_000,
    "_exec_time_us": 450,
    "_timing_source": "kernel_gpu",
    "_algobw_gbs": 222.25,
    "_busbw_gbs": 333.5,
}
EVENTS = [{"kernel_start_ts": 1_795_175_064_708_979 - n, "kernel_stop_ts": 9 + n} for n in range(3)]
PLACES = st.sampled_from(
    [
        *(("header", name) for name in RECORD["header"]),
        *(("metadata", name) for name in RECORD["metadata"]),
        *(("perf", name) for name in FIELDS),
        *(("perf", name) for name in ("p2p_peer", "event_trace_ts", "start_ts", "kernel_events")),
        *((whole,) for whole in ("header", "metadata", "perf")),
    ]
)
VALUES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from([2**31, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**400, -1, 5.0, 1e999, "nan"])
    | st.text(st.characters(exclude_categories=[]), max_size=300)
    | st.sampled_from(["\x1b[2J", "a\x7fb", "\ud800", "x" * 300, [], {}, [None], [{}]])
    | st.just([*EVENTS, {"kernel_start_ts": None}])
)


def record(kind, *, is_verbose):
    performance = {f"{kind}{name}": value for name, value in FIELDS.items()}
    performance[kind] = performance.pop(f"{kind}")
    if kind == "p2p":
        performance["p2p_peer"] = 1
    if is_verbose:
        performance["event_trace_ts"] = {
            f"{kind}_start_ts": 1_795_175_064_708_000,
            "kernel_events": EVENTS,
        }
    return copy.deepcopy(RECORD) | {f"{kind}_perf": performance}


def changed(kind, place, value, *, is_verbose):
    """Return a line with one field put to a value."""
    whole = record(kind, is_verbose=is_verbose)
    perf = whole[f"{kind}_perf"]
    if len(place) == 1:
        whole[f"{kind}_perf" if place == ("perf",) else place[0]] = value
    elif place[0] != "perf":
        whole[place[0]][place[1]] = value
    elif place[1] in FIELDS:
        perf[f"{kind}{place[1]}"] = value
    elif place[1] in {"start_ts", "kernel_events"} and is_verbose:
        name = f"{kind}_start_ts" if place[1] == "start_ts" else place[1]
        perf["event_trace_ts"][name] = value
    else:
        perf[place[1]] = value
    return json.dumps(whole).encode()


def read(path, *lines):
    path.write_bytes(b"\n".join(lines) + b"\n")
    (batch,) = NcclInspector(path, ReadOptions()).extract()
    return batch


@pytest.mark.parametrize("size", [2**64, 10**150])
def test_a_size_beyond_its_column_is_named_and_loses_no_other_line(tmp_path, size):
    good = json.dumps(record("coll", is_verbose=True)).encode()

    batch = read(
        tmp_path / "vm-pid20896.log",
        good,
        changed("coll", ("perf", "_msg_size_bytes"), size, is_verbose=False),
    )

    assert len(batch.rows) == 1
    assert [one.line for one in batch.rejects] == [2]


@pytest.mark.slow
@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.sampled_from(["coll", "p2p"]), PLACES, VALUES, st.booleans())
@example("coll", ("perf", "_msg_size_bytes"), 2**64, False)
@example("coll", ("perf", "_msg_size_bytes"), 10**150, False)
@example("coll", ("header", "comm_name"), "\x1b[2J", False)
@example("coll", ("header", "comm_name"), "a\x7fb", False)
def test_a_line_is_read_alike_as_a_whole_and_field_by_field(
    tmp_path_factory, kind, place, value, is_verbose
):
    line = changed(kind, place, value, is_verbose=is_verbose)
    path = tmp_path_factory.getbasetemp() / "vm-pid20896.log"
    good = json.dumps(record("coll", is_verbose=True)).encode()  # the file is an Inspector's

    at_once = read(path, good, line)
    field_by_field = read(path, good, line[:-1] + ONLY_FIELD_BY_FIELD)

    assert at_once.rows.equals(field_by_field.rows)
    reasons = [[(r.line, r.reason) for r in b.rejects] for b in (at_once, field_by_field)]
    assert reasons[0] == reasons[1]
