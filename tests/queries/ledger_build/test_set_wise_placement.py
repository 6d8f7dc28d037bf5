"""Set-wise placement gives the claims, holds and conflicts of placement in sequence.

Job runs and reports are written without loads and builds: an example takes milliseconds.
"""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import examples

from goodput_queries.database import LocalStore
from goodput_queries.ledger_build.placement import set_wise
from goodput_queries.ledger_build.placement.place import place

# cluster, node, gpu_uuid, gpu_instance, slot, from_ms, to_ms: by number, without numbers, in
# instances, and with a GPU that came late and one that left
SLOTS = [
    *(("c", "a", f"GPU-a{index}", "", index, 0, None) for index in range(4)),
    *(("c", "b", f"GPU-b{index}", "", None, 0, None) for index in range(2)),
    *(("c", "m", "GPU-m", f"mig-{index}", index, 0, None) for index in range(3)),
    ("c", "d", "GPU-d0", "", 0, 0, None),
    ("c", "d", "GPU-d1", "", 1, 50, None),
    ("c", "d", "GPU-d2", "", 2, 0, 100),
]
NODES = ("a", "b", "m", "d")
REPORTS = {
    node: [name for index, (_, _, uuid, instance, *_) in enumerate(s for s in SLOTS if s[1] == node)
           for name in ({"slurm_index": index},
                        {"gpu_uuid": uuid, "gpu_instance": instance or None}, {"gpu_uuid": uuid})]
    for node in NODES}  # fmt: skip
ODD_REPORTS = st.sampled_from(
    [{"slurm_index": 7}, {"gpu_uuid": "GPU-other"}, {"gpus": 1}, {"slurm_index": 0, "start_ms": 70}]
)


@st.composite
def job_runs(draw):
    """Return a job run: of whole nodes, with named GPUs, or with what is less certain."""
    start = 10 * draw(st.integers(0, 14))
    kind = draw(st.sampled_from(["whole", "named", "named", "named", "odd"]))
    nodes = draw(st.lists(st.sampled_from(NODES), min_size=1, max_size=2, unique=True))
    reports = []
    if kind != "whole":
        for node in nodes:
            names = st.lists(st.sampled_from(REPORTS[node]), max_size=3, unique_by=str)
            reports += [{"node": node, **name} for name in draw(names)]
    gpus = len(reports) or sum(slot[1] in nodes for slot in SLOTS)
    if kind == "odd":
        gpus = draw(st.integers(1, 5))
        reports += [{"node": nodes[0], **draw(ODD_REPORTS)} for _ in range(draw(st.integers(0, 2)))]
        nodes = [*nodes, *draw(st.sampled_from([[], ["unknown"], nodes]))]
    end = draw(st.none() | st.integers(1, 6).map(lambda length: start + 10 * length))
    method = draw(st.sampled_from(["scontrol", "scontrol", "pod"]))
    return {"start": start, "end": end, "nodes": nodes, "gpus": gpus, "reports": reports,
            "method": method}  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Return a database with the slots and without anything else."""
    store = LocalStore(tmp_path_factory.mktemp("placement") / "placement.duckdb")
    with store.writing() as cursor:
        for slot in SLOTS:
            values = "values ($1, $2, $3, $4, $5, null, $6, $7)"
            cursor.execute(f"insert into intermediate.int_slots {values}", slot)
        cursor.execute(
            "insert into raw.node_states values "
            "('test', 'c', 'a', 'down', 'down', make_timestamp_ms(75), null, null, null, 1)"
        )
    yield store
    store.close()


def write_job_run(cursor, number, job):
    cursor.execute(
        """insert into intermediate.int_job_runs by name select
            $1 as job_run_key, 'c' as cluster, $1 as job_id_raw, $2 as submit_ms, $2 as start_ms,
            $3 as end_ms, $4 as nodes, $5 as gpus, false as is_inferred""",
        [str(number), job["start"], job["end"], job["nodes"], job["gpus"]],
    )
    for report in job["reports"]:
        cursor.execute(
            """insert into raw.holds by name select
                'test' as source, 'c' as cluster, $1 as job_id_raw, $3 as node, $4 as method,
                make_timestamp_ms($2) as submit_at, $5 as slurm_index, $6 as gpu_uuid,
                $7 as gpu_instance, $8 as gpus, make_timestamp_ms($9) as start_at,
                1 as load_sequence""",
            [str(number), job["start"], report["node"],
             report.get("method", job["method"]),
             *map(report.get, ("slurm_index", "gpu_uuid", "gpu_instance", "gpus", "start_ms"))],
        )  # fmt: skip


def both_ways(store, jobs, monkeypatch):
    """Return the rows of each stage placed set-wise and in sequence, and the nodes in sequence."""
    monkeypatch.setattr(set_wise, "SET_WISE_JOB_RUNS_MIN", 0)
    with store.cursor() as cursor:
        cursor.execute("begin")
        for number, job in enumerate(jobs):
            write_job_run(cursor, number, job)
        rows = set_wise.place_all(cursor)
        ours = {name: cursor.execute(f"from temp.{table}").fetchall()
                for name, table in set_wise.STAGES.items()}  # fmt: skip
        nodes = {node for _, node in cursor.execute("from temp.nodes_in_sequence").fetchall()}
        theirs = {name: frame.rows() for name, frame in place(cursor)._asdict().items()}
        cursor.execute("rollback")
    assert rows == len(ours["holds"])
    return ours, theirs, nodes


@settings(max_examples=examples(20), deadline=None, suppress_health_check=list(HealthCheck))
@given(jobs=st.lists(job_runs(), min_size=1, max_size=7))
def test_set_wise_and_in_sequence_give_the_same(store, monkeypatch, jobs):
    ours, theirs, _ = both_ways(store, jobs, monkeypatch)
    for name, rows in theirs.items():
        assert sorted(ours[name], key=str) == sorted(rows, key=str), name


WHOLE = {"nodes": ["a"], "gpus": 4, "reports": [], "method": "scontrol"}
NAMED = {"nodes": ["b", "m"], "gpus": 2, "method": "scontrol",
         "reports": [{"node": "b", "slurm_index": 1},
                     {"node": "m", "gpu_uuid": "GPU-m", "gpu_instance": "mig-2"}]}  # fmt: skip
COUNTED = {"nodes": ["d"], "gpus": 1, "reports": [], "method": "scontrol"}


def test_only_nodes_of_uncertain_job_runs_are_placed_in_sequence(store, monkeypatch):
    jobs = [
        {**WHOLE, "start": 0, "end": 40},
        {**WHOLE, "start": 40, "end": None},  # the node is down before its end is known
        {**NAMED, "start": 0, "end": None},
        {**NAMED, "start": 90, "end": None},
        {**COUNTED, "start": 0, "end": 50},
    ]

    ours, theirs, nodes = both_ways(store, jobs, monkeypatch)

    assert nodes == {"d"}
    assert len(ours["holds"]) == 4 + 4 + 2 + 2 + 1
    assert sorted(ours["holds"], key=str) == sorted(theirs["holds"], key=str)
