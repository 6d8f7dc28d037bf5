"""Who held up a collective that never ended: by Flight Recorder dumps, by NCCL RAS, by both."""

from tests.queries.conftest import Evidence, built_once, read_from_world, shown_by

from goodput_queries.scope import Scope


def dumps(site, came, *, group="dp", ranks=(0, 1, 2, 3), sequence=45, since=100, last=115, **more):
    """Load dumps: how far each rank had come in a group, and the operation that stood open.

    came: (last enqueued, last completed) by rank; differing: what a rank recorded otherwise
    """
    differing, of_cluster = more.pop("differing", {}), more.pop("cluster", site.name)
    named = {"dump_set": more.pop("dump_set", f"{site.name}/rank_*"), "group_name": group,
             "group_description": group, "cluster": of_cluster}  # fmt: skip
    groups = [{"rank": rank, "last_enqueued": enqueued, "last_completed": completed}
              for rank, (enqueued, completed) in came.items()]  # fmt: skip
    site.add("flight_groups", *groups, source="flight-recorder", ranks=list(ranks),
             last_moment_at=last, **named)  # fmt: skip
    record = {"record_id": sequence, "sequence_number": sequence, "operation": "all_reduce",
              "is_p2p": False, "state": "started", "created_at": since, "timeout_s": 14.0,
              "input_dtype": "Float", "input_elements": 8, **named, **more}  # fmt: skip
    for rank, (enqueued, _) in came.items():
        if enqueued is not None and enqueued >= sequence:
            own = {**record, "rank": rank, **differing.get(rank, {})}
            site.add("flight_records", own, source="flight-recorder")


def transfers(cluster, reported, *, ranks=(0, 1, 2, 3), since=100, last=140, state="started"):
    """Load dumps of a pipeline: by rank the open operations, as PyTorch names them."""
    named = {"dump_set": f"{cluster.name}/rank_*", "group_name": "pp", "group_description": "pp",
             "source": "flight-recorder"}  # fmt: skip
    cluster.add("flight_groups", *({"rank": rank} for rank in reported), ranks=list(ranks),
                last_enqueued=None, last_completed=None, last_moment_at=last, **named)  # fmt: skip
    for rank, operations in reported.items():
        for number, operation in enumerate(operations):
            cluster.add("flight_records", rank=rank, record_id=number, sequence_number=0,
                        p2p_sequence_number=7 + number, operation=operation, is_p2p=True,
                        state=state, created_at=since + number, timeout_s=30.0,
                        **named)  # fmt: skip


def comm(cluster):
    """Return the hash of a communicator that no other cluster has."""
    return f"0x{cluster.first_pid:04x}9b23072b2176"


def answers(site, reported, *, size=4, **more):
    """Load RAS answers: at each second, launched -> ranks (or how many)."""
    rows = [{"ts": second, "launched": launched,
             "rank_count": who if isinstance(who, int) else len(who),
             "ranks": None if isinstance(who, int) else who} for second, groups in reported.items()
            for launched, who in groups.items()]  # fmt: skip
    site.add("comm_counts", *rows, source="nccl-ras", comm_id=comm(site), comm_ranks=size,
             operation="AllReduce", **more)  # fmt: skip


def cases(table):
    """Return a table whose columns of hangs are a select."""
    return {name: (*given, f"select {columns} from marts.hangs order by all", rows)
            for name, (*given, columns, rows) in table.items()}  # fmt: skip


THREE_WAIT = {0: (45, 44), 1: (44, 44), 2: (45, 44), 3: (45, 44)}
ALL_WAIT = dict.fromkeys(range(4), (45, 44))
OTHER = "launched broadcast of Float x 8 in the place of all_reduce 45 of dp, in which 3 ranks wait"
IN_DP = ({0: (45, 44), 3: (44, 44)}, {"group": "dp", "ranks": (0, 3)})
AT_THREE = (100, 120, 140)
# what it shows: dumps (how far ranks came, what differs from the usual), columns, hangs
test_hangs_of_dumps = shown_by(cases({
    "the rank that did not launch what the others wait in is named": (
        [(THREE_WAIT, {})],
        "what, culprit_ranks, culprit_rank, waiting_ranks, operation, sequence_number, "
        "communicator, confidence, evidence_sources, evidence",
        [("missing", [1], 1, [0, 2, 3], "all_reduce", 45, "dp", "Likely", "flight-recorder",
          "has not launched all_reduce 45 of dp, in which 3 ranks wait")]),
    "operations in flight in a dump of a healthy job are no hang": (
        [({0: (52, 45), 1: (50, 47), 2: (52, 45), 3: (52, 46)}, {"sequence": 46, "since": 110})],
        "hang_key", []),
    "a dump asked for by hand shows a hang before its timeout": (
        [(THREE_WAIT, {"last": 140, "timeout_s": 600.0})], "culprit_rank", [(1,)]),
    "a rank that launched another operation differs": (
        [(ALL_WAIT, {"differing": {2: {"operation": "broadcast"}}})],
        "what, culprit_ranks, waiting_ranks, evidence", [("differs", [2], [0, 1, 3], OTHER)]),
    "sizes may differ between ranks of an all-to-all": (
        [(ALL_WAIT, {"operation": "all_to_all", "differing": {2: {"input_elements": 4}}})],
        "what, culprit_ranks", [("operation stands", None)]),
    "a rank without a dump is named but not confirmed": (
        [({rank: came for rank, came in THREE_WAIT.items() if rank != 1}, {})],
        "what, culprit_ranks, confidence", [("no_dump", [1], "Not confirmed")]),
    "a rank that never took part in the group is missing": (
        [({0: (1, None), 1: (None, None), 2: (1, None), 3: (1, None)}, {"sequence": 1})],
        "what, culprit_ranks", [("missing", [1])]),
    "a GPU that has not begun what the others run is named": (
        [(ALL_WAIT, {"differing": {3: {"state": "scheduled"}}})], "what, culprit_ranks",
        [("not_started", [3])]),
    "when all came the operation itself stands": (
        [(ALL_WAIT, {})], "what, culprit_ranks, confidence",
        [("operation stands", None, "Not confirmed")]),
    # rank 0 misses tp because it waits in dp, and dp waits for rank 3
    "a group that waits for a rank that waits itself is not the root": (
        [IN_DP,
         ({0: (8, 8), 1: (9, 8)}, {"group": "tp", "ranks": (0, 1), "sequence": 9, "since": 101})],
        "is_root, communicator, culprit_ranks", [(False, "tp", [0]), (True, "dp", [3])]),
    # ranks 0 and 3 miss tp; rank 0 only because it waits for rank 3 in dp
    "of several behind those that wait for nobody are to blame": (
        [IN_DP,
         ({0: (8, 8), 1: (9, 8), 2: (9, 8), 3: (8, 8)},
          {"group": "tp", "sequence": 9, "since": 101})], "communicator, culprit_ranks, is_root",
        [("dp", [3], True), ("tp", [3], True)]),
    "dumps of a restarted job under the same names are two stops": (
        [(THREE_WAIT, {}),
         ({0: (30, 29), 1: (30, 29), 2: (29, 29), 3: (30, 29)},
          {"sequence": 30, "since": 800, "last": 815})], "sequence_number, culprit_rank",
        [(30, 2), (45, 1)]),
}), load=lambda c, dumped: [dumps(c, came, **more) for came, more in dumped])  # fmt: skip


BEHIND = {t: {39: [1], 40: [0, 2, 3]} for t in AT_THREE}
# what it shows: launched -> ranks by second, size of the communicator, columns, hangs
test_hangs_of_counts = shown_by(cases({
    "a count that stays behind names the rank": (
        BEHIND, 4, "culprit_rank, waiting_ranks, sequence_number, confidence, evidence_sources",
        [(1, [0, 2, 3], 40, "Likely", "nccl-ras")]),
    "counts that differ once are ranks at work": (
        {100: {39: [1], 40: [0, 2, 3]}, 160: {80: [1], 81: [0, 2, 3]}}, 4, "hang_key", []),
    "a rank that came late but came is no hang": (
        {**BEHIND, 160: {41: [0, 1, 2, 3]}}, 4, "hang_key", []),
    "a rank that died behind the others did not catch up": (
        {**BEHIND, 160: {40: [0, 2, 3]}}, 4, "culprit_rank", [(1,)]),
    "the others may leave the communicator while the rank stays behind": (
        {100: {39: [1], 40: [0, 2, 3]}, 110: {39: [1]}, 140: {39: [1]}}, 4,
        "culprit_rank, waiting_ranks", [(1, [0, 2, 3])]),
    "ranks that RAS only counts are not named": (
        {t: {640: 30, 641: [12, 13]} for t in AT_THREE}, 32,
        "culprit_ranks, waiting_ranks, confidence", [(None, [12, 13], "Not confirmed")]),
}), load=lambda c, counts, size: answers(c, counts, size=size))  # fmt: skip


def gang(cluster, job="9", node="a", start=0):
    """Load a job of four ranks that reports events."""
    cluster.node(node, 4)
    cluster.job(job, start, start + 1000, [node], 4, "TIMEOUT")
    starts = [{"event": "job.start", "t": start + 5, "rank": r, "pid": cluster.first_pid + r}
              for r in range(4)]  # fmt: skip
    cluster.events(job, starts, host=node)


@built_once
def world(evidence):
    """Give sources that name no cluster: the jobs of a time, of which some have these ranks."""
    both, two, address = (Evidence(evidence.store, name, pid) for name, pid in (
        ("c", 100), ("two", 200), ("address", 300)))  # fmt: skip
    gang(both)
    both.add("rank_map", *({"rank": r, "pid": both.first_pid + r} for r in range(4)),
             source="nccl-ras", cluster=None, comm_id=comm(both), ranks=4, node="192.0.2.2",
             seen_at=6)  # fmt: skip
    dumps(both, THREE_WAIT, cluster=None)
    answers(both, {t: {39: [1], 40: [0, 2, 3]} for t in (102, 120, 140)}, cluster=None)
    for job, node in (("9", "b"), ("77", "d")):
        gang(two, job, node, start=2000)
    for name, since in (("rank_*", 2100), ("job-77/rank_*", 2101), ("job-779/rank_*", 2102)):
        dumps(two, THREE_WAIT, cluster=None, dump_set=name, since=since, last=since + 15)
    address.add("gpus", node="e", gpu_uuid="GPU-5", gpu_index=5)
    rank = {"rank": 1, "ranks": 4, "pid": 71}
    address.add("rank_map", rank, source="nccl-ras", cluster=None, comm_id=comm(address),
                node="192.0.2.3", gpu_index=5, seen_at=4000)  # fmt: skip
    address.add("collectives", rank, cluster=None, comm_id=comm(address)[:16], node="e",
                operation="AllReduce", is_p2p=False, sequence_number=0, exec_time_s=1.0,
                dumped_at=3990)  # fmt: skip
    answers(address, {t: {39: [1], 40: [0, 2, 3]} for t in (4000, 4040)}, cluster=None)


test_places_of_hangs = read_from_world({
    "the attempt that had these ranks then reports node and GPU, and both sources confirm it": (
        "select cluster, run_id, attempt, culprit_rank, culprit_node, culprit_gpu_uuid, "
        "evidence_sources, confidence from marts.hangs",
        [("c", "9", 0, 1, "a", "c/a#1", "flight-recorder, nccl-ras", "Confirmed")],
        Scope(run="c/9")),
    "another run has none": ("from marts.hangs", [], Scope(run="c/8")),
    "of two jobs with these ranks the one in the folder's name is taken": (
        "select cluster, run_id, culprit_node from marts.hangs order by all",
        [("two", "77", "d")], Scope(cluster="two")),
    # the Inspector knows the node of the same rank and process, and cuts hashes
    "an address of RAS becomes a node and a GPU": (
        "select run_id, culprit_node, culprit_gpu_uuid from marts.hangs where run_key is null "
        "order by all", [(None, "e", "GPU-5"), (None, None, None), (None, None, None)]),
})  # fmt: skip


PAIR = {"ranks": (0, 1)}
WAITS = "has not launched send 0->1 7 of pp, in which 1 rank waits"
# what it shows: open operations by rank, what differs from the usual, columns, hangs
test_hangs_of_transfers = shown_by(cases({
    "the rank that did not launch the other side is named": (
        {0: [], 1: ["recv 1<-0"]}, PAIR,
        "operation, sequence_number, what, culprit_ranks, waiting_ranks, confidence, evidence",
        [("send 0->1", 7, "missing", [0], [1], "Not confirmed", WAITS)]),
    "of a pipeline that waits in a row the first rank is the root": (
        {0: [], 1: ["recv 1<-0"], 2: ["recv 2<-1"], 3: ["recv 3<-2"]}, {},
        "operation, culprit_ranks, is_root",
        [("send 0->1", [0], True), ("send 1->2", [1], False), ("send 2->3", [2], False)]),
    "a transfer that both ranks stand in names nobody": (
        {0: ["send 0->1"], 1: ["recv 1<-0"]}, PAIR,
        "what, culprit_ranks, waiting_ranks, confidence",
        [("operation stands", None, [0, 1], "Not confirmed")]),
    "a send that nobody receives names the receiver": (
        {0: ["send 0->1", "send 0->1"], 1: []}, PAIR, "operation, culprit_ranks",
        [("send 0->1", [1])]),
    "a rank without a dump is named but not confirmed": (
        {1: ["recv 1<-0"]}, PAIR, "what, culprit_ranks, confidence",
        [("no_dump", [0], "Not confirmed")]),
    "ranks of a group become those of the job": (
        {12: [], 28: ["recv 1<-0"]}, {"ranks": (12, 28)}, "operation, culprit_ranks, waiting_ranks",
        [("send 12->28", [12], [28])]),
    "what is done is no hang": (
        {0: [], 1: ["recv 1<-0"]}, {**PAIR, "state": "completed"}, "hang_key", []),
    "what is young is no hang": ({0: [], 1: ["recv 1<-0"]}, {**PAIR, "since": 130}, "hang_key", []),
    "what names no ranks is no hang": ({0: [], 1: ["coalesced"]}, PAIR, "hang_key", []),
}), load=lambda c, reported, more: transfers(c, reported, **more))  # fmt: skip
