"""Faults of a 400-node cluster by way of a file of node states, to the digit of the README there.

Starts and ends are paired by node and description. An hour stands for a day of the trace: 174 days
of 400 nodes are 1.7 million GPU-hours of ledger, which a test has no time for.
"""

import json
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta

import pytest
from tests.external_data import EXTERNAL, reading

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions

pytestmark = reading(EXTERNAL)
TRACE = EXTERNAL / "stepfun-faults-first-half" / "fault_trace.json"
NODES, DAYS = 400, 174
START = datetime(2026, 1, 1, tzinfo=UTC)
Fault = tuple[str, float, float | None, str]  # node, start and end in days, description


def faults():
    """Return the faults of the trace; the end of one that is open is None."""
    started = defaultdict(list)
    found = []
    for event in json.loads(TRACE.read_text()):
        node, what = event["node_id"], event["fault_type"]["Desc"]
        if event["event_type"] == "fault_start":
            started[node, what].append(event["event_time"])
        else:
            found.append((node, started[node, what].pop(0), event["event_time"], what))
    return found + [(n, day, None, what) for (n, what), days in started.items() for day in days]


def instant(day):
    return "" if day is None else (START + timedelta(hours=day)).isoformat()


def write(folder, found):
    rows = "".join(f'{n},down,{instant(a)},{instant(b)},"{what}"\n' for n, a, b, what in found)
    watched = f"*,up,{instant(0)},{instant(DAYS)},\n"
    (folder / "states.csv").write_text("node,state,start,end,reason\n" + watched + rows)
    named = sorted({node for node, *_ in found})
    nodes = named + [f"unharmed-{i}" for i in range(NODES - len(named))]
    gpus = "".join(f"{node},1,{instant(0)}\n" for node in nodes)
    (folder / "inventory.csv").write_text("node,gpus,valid_from\n" + gpus)


@pytest.fixture(scope="module")
def store(module_store, tmp_path_factory):
    folder = tmp_path_factory.mktemp("faults")
    found = faults()
    node, start, end, _ = next(fault for fault in found if fault[2] is not None)
    # a second fault of the node inside the first one, found by another check
    within = (node, start + (end - start) / 4, start + (end - start) / 2, "found twice")
    write(folder, [*found, within])
    made = module_store()
    summary = ingest(made, "auto", [folder], ReadOptions(cluster="stepfun"))
    assert (summary.rejects, summary.unrecognised) == (0, [])
    made.build()
    return made


def test_faults_of_one_node_at_one_time_count_once_and_are_down_in_the_ledger(store):
    found = store.read(
        "select count(*), count(*) filter (where end_at is null), sum(reports)::int, "
        "round(sum(outage_ms) / 3600000.0, 3) from marts.node_outages"
    )

    assert found.rows() == [(312, 3, 313, 2_030.339)]
    found = store.read("select round(sum(gpu_ms) / 3600000.0, 3) from marts.ledger_by_category "
                       "where category = 'down'")  # fmt: skip

    assert found.rows() == [(2_030.339,)]


def test_time_between_failures_is_that_of_the_trace(store):
    found = store.read("select nodes, failures, round(mtbf_s / 3600, 4), round(available_ratio, 6) "
                       "from marts.fleet_reliability")  # fmt: skip

    up = NODES * DAYS - 2_030.3392
    assert found.rows() == [(400, 312, round(up / 312, 4), round(up / (NODES * DAYS), 6))]


def test_nodes_rank_by_their_faults_as_in_the_trace(store):
    found = store.read("select node, failures from marts.node_health where failures > 0")

    assert dict(found.rows()) == Counter(node for node, *_ in faults())
