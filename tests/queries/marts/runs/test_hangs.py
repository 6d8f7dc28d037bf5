"""Who held up a collective that never ended: by Flight Recorder dumps, by NCCL RAS, by both."""

import pytest

from goodput_queries.scope import Scope

COMM = "0x6e279b23072b2176"


@pytest.fixture
def dumps(evidence):
    """Return a maker of dumps: how far each rank had come in a group, and what stood open."""

    def add(came, *, group="dp", ranks=(0, 1, 2, 3), sequence=45, since=100, last=115, **common):
        folder = common.pop("dump_set", "job/rank_*")
        base = {"dump_set": folder, "group_name": group, "group_description": group}
        evidence.load(
            "flight_groups",
            [
                {
                    **base, "rank": rank, "ranks": list(ranks), "last_enqueued": enqueued,
                    "last_completed": completed, "last_moment_at": evidence.at(last),
                }
                for rank, (enqueued, completed) in came.items()
            ],
            "flight-recorder",
        )  # fmt: skip
        differing = common.pop("differing", {})
        evidence.load(
            "flight_records",
            [
                {
                    **base, "rank": rank, "record_id": sequence, "sequence_number": sequence,
                    "operation": "all_reduce", "is_p2p": False, "state": "started",
                    "created_at": evidence.at(since), "timeout_s": 14.0, "input_dtype": "Float",
                    "input_elements": 8, **common, **differing.get(rank, {}),
                }
                for rank, (enqueued, _) in came.items()
                if enqueued is not None and enqueued >= sequence
            ],
            "flight-recorder",
        )  # fmt: skip

    return add


@pytest.fixture
def answers(evidence):
    """Return a maker of RAS answers: at each second, launched -> ranks (or how many)."""

    def add(reported, *, comm=COMM, size=4, operation="AllReduce"):
        evidence.load(
            "comm_counts",
            [
                {
                    "comm_id": comm, "comm_ranks": size, "ts": evidence.at(second),
                    "operation": operation, "launched": launched,
                    "rank_count": who if isinstance(who, int) else len(who),
                    "ranks": None if isinstance(who, int) else who,
                }
                for second, groups in reported.items()
                for launched, who in groups.items()
            ],
            "nccl-ras",
        )  # fmt: skip

    return add


@pytest.fixture
def gang(evidence):
    """Load a job of four ranks on node a that reports events."""
    evidence.node("a", 4)
    evidence.job("9", 0, 1000, ["a"], 4, "TIMEOUT")
    starts = [{"event": "job.start", "t": 5, "rank": r, "pid": 70 + r} for r in range(4)]
    evidence.events("9", starts, host="a")


def hangs(evidence, *columns):
    evidence.store.build()
    return evidence.store.read(f"select {', '.join(columns)} from marts.hangs order by all").rows()


THREE_WAIT = {0: (45, 44), 1: (44, 44), 2: (45, 44), 3: (45, 44)}


def test_the_rank_that_did_not_launch_what_the_others_wait_in_is_named(evidence, dumps):
    dumps(THREE_WAIT)

    found = hangs(
        evidence, "what", "culprit_ranks", "culprit_rank", "waiting_ranks", "operation",
        "sequence_number", "communicator", "confidence", "evidence_sources", "evidence",
    )  # fmt: skip

    evidence_text = "has not launched all_reduce 45 of dp, in which 3 ranks wait"
    assert found == [
        ("missing", [1], 1, [0, 2, 3], "all_reduce", 45, "dp", "Likely", "flight-recorder",
         evidence_text),
    ]  # fmt: skip


@pytest.mark.usefixtures("gang")
def test_the_attempt_that_had_these_ranks_then_reports_node_and_gpu(evidence, dumps):
    dumps(THREE_WAIT)

    columns = ("cluster", "run_id", "attempt", "culprit_node", "culprit_gpu_uuid")
    assert hangs(evidence, *columns) == [("c", "9", 0, "a", "c/a#1")]


@pytest.mark.usefixtures("gang")
def test_of_two_jobs_with_these_ranks_the_one_in_the_folders_name_is_taken(evidence, dumps):
    evidence.node("b", 4)
    evidence.job("77", 0, 1000, ["b"], 4)
    starts = [{"event": "job.start", "t": 5, "rank": r, "pid": 70 + r} for r in range(4)]
    evidence.events("77", starts, host="b")
    dumps(THREE_WAIT)
    dumps(THREE_WAIT, dump_set="job-77/rank_*", since=101)

    dumps(THREE_WAIT, dump_set="job-779/rank_*", since=102, last=117)

    found = hangs(evidence, "communicator", "run_id", "culprit_node")
    assert [row[1:] for row in found] == [("77", "b"), (None, None), (None, None)]


@pytest.mark.quiet("hang")
def test_operations_in_flight_in_a_dump_of_a_healthy_job_are_no_hang(evidence, dumps):
    dumps({0: (52, 45), 1: (50, 47), 2: (52, 45), 3: (52, 46)}, sequence=46, since=110, last=115)

    assert hangs(evidence, "hang_key") == []


def test_a_dump_asked_for_by_hand_shows_a_hang_before_its_timeout(evidence, dumps):
    dumps(THREE_WAIT, since=100, last=140, timeout_s=600.0)

    assert hangs(evidence, "culprit_rank") == [(1,)]


def test_a_rank_that_launched_another_operation_differs(evidence, dumps):
    came = dict.fromkeys(range(4), (45, 44))
    dumps(came, differing={2: {"operation": "broadcast"}})

    columns = ("what", "culprit_ranks", "waiting_ranks", "evidence")
    text = (
        "launched broadcast of Float x 8 in the place of all_reduce 45 of dp, in which 3 ranks wait"
    )
    assert hangs(evidence, *columns) == [("differs", [2], [0, 1, 3], text)]


def test_sizes_may_differ_between_ranks_of_an_all_to_all(evidence, dumps):
    came = dict.fromkeys(range(4), (45, 44))
    dumps(came, operation="all_to_all", differing={2: {"input_elements": 4}})

    assert hangs(evidence, "what", "culprit_ranks") == [("operation stands", None)]


def test_a_rank_without_a_dump_is_named_but_not_confirmed(evidence, dumps):
    dumps({rank: came for rank, came in THREE_WAIT.items() if rank != 1})

    found = hangs(evidence, "what", "culprit_ranks", "confidence")
    assert found == [("no_dump", [1], "Not confirmed")]


def test_a_rank_that_never_took_part_in_the_group_is_missing(evidence, dumps):
    dumps({0: (1, None), 1: (None, None), 2: (1, None), 3: (1, None)}, sequence=1)

    assert hangs(evidence, "what", "culprit_ranks") == [("missing", [1])]


def test_a_gpu_that_has_not_begun_what_the_others_run_is_named(evidence, dumps):
    came = dict.fromkeys(range(4), (45, 44))
    dumps(came, differing={3: {"state": "scheduled"}})

    assert hangs(evidence, "what", "culprit_ranks") == [("not_started", [3])]


def test_when_all_came_the_operation_itself_stands(evidence, dumps):
    dumps(dict.fromkeys(range(4), (45, 44)))

    found = hangs(evidence, "what", "culprit_ranks", "confidence")
    assert found == [("operation stands", None, "Not confirmed")]


def test_a_group_that_waits_for_a_rank_that_waits_itself_is_not_the_root(evidence, dumps):
    """Rank 0 misses tp because it waits in dp, and dp waits for rank 3."""
    dumps({0: (45, 44), 3: (44, 44)}, group="dp", ranks=(0, 3))
    dumps({0: (8, 8), 1: (9, 8)}, group="tp", ranks=(0, 1), sequence=9, since=101)

    found = hangs(evidence, "is_root", "communicator", "culprit_ranks")
    assert found == [(False, "tp", [0]), (True, "dp", [3])]


def test_of_several_behind_those_that_wait_for_nobody_are_to_blame(evidence, dumps):
    """Ranks 0 and 3 miss tp; rank 0 only because it waits for rank 3 in dp."""
    dumps({0: (45, 44), 3: (44, 44)}, group="dp", ranks=(0, 3))
    came = {0: (8, 8), 1: (9, 8), 2: (9, 8), 3: (8, 8)}
    dumps(came, group="tp", ranks=(0, 1, 2, 3), sequence=9, since=101)

    found = hangs(evidence, "communicator", "culprit_ranks", "is_root")
    assert found == [("dp", [3], True), ("tp", [3], True)]


def test_dumps_of_a_restarted_job_under_the_same_names_are_two_stops(evidence, dumps):
    dumps(THREE_WAIT)
    second = {0: (30, 29), 1: (30, 29), 2: (29, 29), 3: (30, 29)}
    dumps(second, sequence=30, since=800, last=815)

    assert hangs(evidence, "sequence_number", "culprit_rank") == [(30, 2), (45, 1)]


def test_a_count_that_stays_behind_names_the_rank(evidence, answers):
    answers({t: {39: [1], 40: [0, 2, 3]} for t in (100, 120, 140)})

    columns = ("culprit_rank", "waiting_ranks", "sequence_number", "confidence", "evidence_sources")
    assert hangs(evidence, *columns) == [(1, [0, 2, 3], 40, "Likely", "nccl-ras")]


def test_counts_that_differ_once_are_ranks_at_work(evidence, answers):
    answers({100: {39: [1], 40: [0, 2, 3]}, 160: {80: [1], 81: [0, 2, 3]}})

    assert hangs(evidence, "hang_key") == []


def test_a_rank_that_came_late_but_came_is_no_hang(evidence, answers):
    answers({t: {39: [1], 40: [0, 2, 3]} for t in (100, 120, 140)})
    answers({160: {41: [0, 1, 2, 3]}})

    assert hangs(evidence, "hang_key") == []


def test_a_rank_that_died_behind_the_others_did_not_catch_up(evidence, answers):
    answers({t: {39: [1], 40: [0, 2, 3]} for t in (100, 120, 140)})
    answers({160: {40: [0, 2, 3]}})

    assert hangs(evidence, "culprit_rank") == [(1,)]


def test_the_others_may_leave_the_communicator_while_the_rank_stays_behind(evidence, answers):
    answers({100: {39: [1], 40: [0, 2, 3]}, 110: {39: [1]}, 140: {39: [1]}})

    assert hangs(evidence, "culprit_rank", "waiting_ranks") == [(1, [0, 2, 3])]


def test_ranks_that_ras_only_counts_are_not_named(evidence, answers):
    answers({t: {640: 30, 641: [12, 13]} for t in (100, 120, 140)}, size=32)

    found = hangs(evidence, "culprit_ranks", "waiting_ranks", "confidence")
    assert found == [(None, [12, 13], "Not confirmed")]


def test_an_address_of_ras_becomes_a_node_and_a_gpu(evidence, answers):
    """The Inspector knows the node of the same rank and process, and cuts hashes."""
    evidence.add("gpus", node="a", gpu_uuid="GPU-5", gpu_index=5)
    place = {"comm_id": COMM, "rank": 1, "ranks": 4, "node": "192.0.2.2", "pid": 71}
    evidence.load("rank_map", [{**place, "gpu_index": 5, "seen_at": evidence.at(100)}], "nccl-ras")
    operation = {"comm_id": COMM[:16], "rank": 1, "ranks": 4, "node": "a", "pid": 71}
    of_inspector = {"operation": "AllReduce", "is_p2p": False, "sequence_number": 0}
    seen = {"exec_time_s": 1.0, "dumped_at": evidence.at(90)}
    evidence.load("collectives", [{**operation, **of_inspector, **seen}])
    answers({t: {39: [1], 40: [0, 2, 3]} for t in (100, 140)})

    assert hangs(evidence, "culprit_node", "culprit_gpu_uuid") == [("a", "GPU-5")]


@pytest.mark.usefixtures("gang")
def test_both_sources_naming_one_rank_confirm_each_other(evidence, dumps, answers):
    ranks = [
        {"comm_id": COMM, "rank": r, "ranks": 4, "node": "192.0.2.2", "pid": 70 + r,
         "seen_at": evidence.at(6)}
        for r in range(4)
    ]  # fmt: skip
    evidence.load("rank_map", ranks, "nccl-ras")
    dumps(THREE_WAIT)
    answers({t: {39: [1], 40: [0, 2, 3]} for t in (102, 120, 140)})

    columns = ("culprit_rank", "culprit_node", "evidence_sources", "confidence")
    assert hangs(evidence, *columns) == [(1, "a", "flight-recorder, nccl-ras", "Confirmed")]


@pytest.mark.usefixtures("gang")
def test_the_window_and_the_run_of_the_scope_choose(evidence, dumps):
    dumps(THREE_WAIT)
    evidence.store.build()

    def count(**scope):
        return evidence.store.read("from marts.hangs", scope=Scope(**scope)).height

    assert count(run="c/9") == 1
    assert count(run="c/8") == 0
