"""What Flight Recorder and NCCL RAS report of ranks that hang, for made-up clusters."""

COMM = "6e279b23072b2176"


def dumps(site, came, *, group="dp", ranks=(0, 1, 2, 3), sequence=45, since=100, last=115, **more):
    """Load dumps: how far each rank had come in a group, and the operation that stood open.

    came: (last enqueued, last completed) by rank; differing: what a rank recorded otherwise
    """
    differing, of_cluster = more.pop("differing", {}), more.pop("cluster", site.name)
    named = {
        "dump_set": more.pop("dump_set", f"{site.name}/rank_*"), "group_name": group,
        "group_description": group, "cluster": of_cluster,
    }  # fmt: skip
    groups = [
        {"rank": rank, "last_enqueued": enqueued, "last_completed": completed}
        for rank, (enqueued, completed) in came.items()
    ]
    site.add(
        "flight_groups", *groups, source="flight-recorder", ranks=list(ranks),
        last_moment_at=last, **named,
    )  # fmt: skip
    record = {
        "record_id": sequence, "sequence_number": sequence, "operation": "all_reduce",
        "is_p2p": False, "state": "started", "created_at": since, "timeout_s": 14.0,
        "input_dtype": "Float", "input_elements": 8, **named, **more,
    }  # fmt: skip
    for rank, (enqueued, _) in came.items():
        if enqueued is not None and enqueued >= sequence:
            own = {**record, "rank": rank, **differing.get(rank, {})}
            site.add("flight_records", own, source="flight-recorder")


def transfers(cluster, reported, *, ranks=(0, 1, 2, 3), since=100, last=140, state="started"):
    """Load dumps of a pipeline: by rank the open operations, as PyTorch names them."""
    named = {
        "dump_set": f"{cluster.name}/rank_*", "group_name": "pp", "group_description": "pp",
        "source": "flight-recorder",
    }  # fmt: skip
    cluster.add(
        "flight_groups", *({"rank": rank} for rank in reported), ranks=list(ranks),
        last_enqueued=None, last_completed=None, last_moment_at=last, **named,
    )  # fmt: skip
    for rank, operations in reported.items():
        for number, operation in enumerate(operations):
            cluster.add(
                "flight_records", rank=rank, record_id=number, sequence_number=0,
                p2p_sequence_number=7 + number, operation=operation, is_p2p=True, state=state,
                created_at=since + number, timeout_s=30.0, **named,
            )  # fmt: skip


def comm(cluster):
    """Return the hash of a communicator that no other cluster has."""
    return f"0x{cluster.first_pid:04x}{COMM[4:]}"


def answers(site, reported, *, size=4, **more):
    """Load RAS answers: at each second, launched -> ranks (or how many)."""
    rows = [
        {
            "ts": second, "launched": launched,
            "rank_count": who if isinstance(who, int) else len(who),
            "ranks": None if isinstance(who, int) else who,
        }
        for second, groups in reported.items()
        for launched, who in groups.items()
    ]  # fmt: skip
    site.add(
        "comm_counts", *rows, source="nccl-ras", comm_id=comm(site), comm_ranks=size,
        operation="AllReduce", **more,
    )  # fmt: skip


def hangs(cluster, columns):
    """Build and return columns of the hangs of a cluster."""
    cluster.build()
    return cluster.read(f"select {columns} from marts.hangs order by all").rows()
