"""What Slurm's commands would have printed, and the site's own inventory and prices."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from goodput_synthetic.fleet.demand import TEAM_SHARES, TEAMS
from goodput_synthetic.fleet.fleet import (
    CPUS_PER_NODE,
    GPUS_PER_NODE,
    MEMORY_MIB,
    MIG_LAYOUT,
    MODELS,
    POWER_LIMIT_W,
    SLOWDOWN_TEMPERATURE_C,
    Fleet,
    hostlist,
    pci_bus_id,
    ranges,
)
from goodput_synthetic.fleet.habits import SECOND
from goodput_synthetic.fleet.lives import Life
from goodput_synthetic.fleet.outages import Outage
from goodput_synthetic.fleet.schedule import JobRun, Schedule

CLUSTER = "atlas"
MIB_PER_GPU = 250_000
SACCT_FIELDS = (
    *("Cluster", "JobID", "JobIDRaw", "DBIndex", "User", "Account", "QOS", "Partition"),
    *("Reservation", "State", "ExitCode", "DerivedExitCode", "Reason", "Submit", "Eligible"),
    *("Start", "End", "ElapsedRaw", "Suspended", "TimelimitRaw", "NNodes", "NodeList", "ReqTRES"),
    *("AllocTRES", "Flags", "Comment", "JobName"),
)
EXIT_CODES = {
    "COMPLETED": "0:0",
    "FAILED": "1:0",
    "OUT_OF_MEMORY": "0:125",
    "CANCELLED": "0:0",
    "TIMEOUT": "0:0",
    "NODE_FAIL": "1:0",
    "PREEMPTED": "0:0",
    "REQUEUED": "0:0",
    "RUNNING": "0:0",
    "PENDING": "0:0",
}
EVENT_STATES = {"down": "DOWN*", "drained": "DRAIN", "powered_off": "IDLE+POWERED_DOWN"}
UIDS = {user: 10_001 + i for i, user in enumerate(u for users in TEAMS.values() for u in users)}


def write(
    folder: Path, fleet: Fleet, schedule: Schedule, lives: list[Life], start: datetime, total_s: int
) -> None:
    """Write sacct, scontrol, sacctmgr, inventory, rates, tariffs, budgets, carbon."""
    start_s = int(start.timestamp())
    suspended = {id(life.run): life.suspended // SECOND for life in lives}
    _write(folder / "sacct.txt", _sacct(fleet, schedule, suspended, start_s, total_s))
    _write(folder / "scontrol_job_d.txt", _scontrol_jobs(fleet, schedule, start))
    _write(folder / "scontrol_node.txt", _scontrol_nodes(fleet, schedule, start, total_s))
    _write(folder / "scontrol_reservation.txt", _reservations(fleet, schedule, start, total_s))
    _write(folder / "sacctmgr_event.psv", _events(fleet, schedule, start, total_s))
    _write(folder / "inventory.csv", _inventory(fleet, start))
    _write(folder / "rates.csv", RATES)
    _write(folder / "tariffs.csv", TARIFFS)
    _write(folder / "budgets.csv", _budgets(len(fleet.gpu_uuids)))
    _write(folder / "carbon.csv", _carbon(start, total_s))
    _write(folder / "power_feeds.csv", _power_feeds(fleet))


def write_changed(
    folder: Path, fleet: Fleet, schedule: Schedule, lives: list[Life], start: datetime,
    window_s: tuple[int, int],
) -> list[Path]:  # fmt: skip
    """Write what Slurm's commands say of jobs that changed in a window, and of all nodes."""
    since_s, now_s = window_s

    def is_new(*moments: int | None) -> bool:
        return any(at is not None and since_s < at <= now_s for at in moments)

    start_s = int(start.timestamp())
    suspended = {id(life.run): life.suspended // SECOND for life in lives}
    changed = {id(run) for run in schedule.runs if is_new(run.submit_s, run.start_s, run.end_s)}
    header, *rows = _sacct(fleet, schedule, suspended, start_s, now_s, changed)
    running = Schedule([run for run in schedule.runs if is_new(run.start_s)], [])
    outages = [o for o in schedule.outages if is_new(o.start_s, o.end_s)]
    files = {
        "sacct.txt": [header, *rows] if rows else [],
        "scontrol_job_d.txt": _scontrol_jobs(fleet, running, start),
        "scontrol_node.txt": _scontrol_nodes(fleet, schedule, start, now_s),
    }
    if outages:
        files["sacctmgr_event.psv"] = _events(fleet, Schedule([], outages), start, now_s)
        files["scontrol_reservation.txt"] = _reservations(fleet, schedule, start, now_s)
    written = []
    for name, lines in files.items():
        if lines:
            _write(folder / name, lines)
            written.append(folder / name)
    return written


RATES = [
    "cluster,gpu_model,mig_profile,partition,qos,price_per_gpu_h,valid_from,valid_to,note",
    f"{CLUSTER},H100,,,,2.10,,,example price; replace it with your own",
    f"{CLUSTER},H200,,,,2.60,,,example price; replace it with your own",
    f"{CLUSTER},,,,scavenger,0.90,,,example price of preemptible jobs",
]
TARIFFS = [
    "cluster,zone,from_hour,to_hour,price_per_kwh,pue,server_ratio,note",
    f"{CLUSTER},UTC,22,6,0.09,1.35,1.40,example tariff at night; replace it with your own",
    f"{CLUSTER},UTC,6,22,0.14,1.35,1.40,example tariff by day; replace it with your own",
]
FOSSIL_G_PER_KWH = 700
CARBON_FREE_BY_HOUR = (
    *(0.35, 0.35, 0.35, 0.35, 0.35, 0.36, 0.38, 0.42, 0.48, 0.54, 0.60, 0.64),
    *(0.65, 0.64, 0.60, 0.54, 0.48, 0.42, 0.38, 0.36, 0.35, 0.35, 0.35, 0.35),
)
USD_PER_GPU_MONTH = 1100
FEED_KW = (60, 60, 60, 45)
VERSIONS = {"h100": ("580.95.05", "96.00.CF.00.01"), "h200": ("580.159.04", "96.00.D9.00.03")}
BUDGET_RATIOS = {"nlp": 0.9, "vision": 1.15, "speech": 1.0, "platform": 1.3}  # robotics has none


def _write(path: Path, lines: list[str]) -> None:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


def _budgets(gpus: int) -> list[str]:
    """Return what teams may spend and the GPUs kept for them: some spend less, some more."""
    lines = ["cluster,account,cost_per_month,quota_gpus,note"]
    for team, share in zip(TEAMS, TEAM_SHARES, strict=True):
        ratio = BUDGET_RATIOS.get(team)
        cost = "" if ratio is None else round(gpus * share * ratio * USD_PER_GPU_MONTH / 100) * 100
        lines.append(f"{CLUSTER},{team},{cost},{round(gpus * share)},example budget")
    return lines


def _carbon(start: datetime, total_s: int) -> list[str]:
    """Return an hourly intensity of a grid with much sun: least at noon."""
    lines = ["cluster,valid_from,valid_to,g_per_kwh,carbon_free_ratio,pue,server_ratio,note"]
    for hour in range(total_s // 3_600):
        begin = start + timedelta(hours=hour)
        free = CARBON_FREE_BY_HOUR[begin.astimezone(UTC).hour]
        end, grams = begin + timedelta(hours=1), round(FOSSIL_G_PER_KWH * (1 - free))
        lines.append(
            f"{CLUSTER},{begin.isoformat()},{end.isoformat()},{grams},{free},1.35,1.40,"
            "example intensity; replace it with your own"
        )
    return lines


def _power_feeds(fleet: Fleet) -> list[str]:
    """Return what feeds can carry: some too little to carry the load of a pair alone."""
    names = sorted({name for node in fleet.nodes for name in node.feeds})
    return [
        "cluster,feed,capacity_kw,server_ratio,note",
        *(
            f"{CLUSTER},{name},{FEED_KW[number % len(FEED_KW)]},1.40,"
            "example capacity; replace it with your own"
            for number, name in enumerate(names)
        ),
    ]


def _tres(run: JobRun) -> str:
    request = run.request
    nodes = max(1, request.gpus // GPUS_PER_NODE)
    return (
        f"billing={request.gpus * 100},cpu={request.cpus},gres/gpu:{request.gres_type}="
        f"{request.gpus},gres/gpu={request.gpus},mem={MIB_PER_GPU * request.gpus}M,node={nodes}"
    )


def _sacct(
    fleet: Fleet, schedule: Schedule, suspended: dict[int, int], start_s: int, total_s: int,
    only: set[int] | None = None,
) -> list[str]:  # fmt: skip
    """Return a header and a row a job run; `only`: of the job runs with these identities."""
    rows = ["\x1f".join(SACCT_FIELDS)]
    runs = sorted(schedule.runs, key=lambda run: (run.submit_s, run.request.job_id))
    for index, run in enumerate(runs):
        if only is not None and id(run) not in only:
            continue
        request = run.request
        is_started, state = run.start_s is not None, run.state
        if state == "CANCELLED":
            state = f"CANCELLED by {UIDS[request.user]}"
        stopped_s = suspended.get(id(run), 0)
        elapsed_s = 0
        if run.start_s is not None:
            elapsed_s = (total_s if run.end_s is None else run.end_s) - run.start_s - stopped_s
        exit_code = EXIT_CODES[run.state]
        cells = (
            *(CLUSTER, str(request.job_id), str(request.job_id), str(5_000_001 + index)),
            *(request.user, request.account, request.qos, request.partition, request.reservation),
            *(state, exit_code, exit_code, "None" if is_started else "Resources"),
            *(str(start_s + run.submit_s), _moment(start_s, run.eligible_s)),
            *(_moment(start_s, run.start_s, unset="Unknown"), _moment(start_s, run.end_s)),
            *(str(elapsed_s), _clock(stopped_s), str(request.limit_s // 60)),
            str(len(run.nodes) or max(1, request.gpus // GPUS_PER_NODE)),
            hostlist([fleet.nodes[n].name for n in run.nodes]) or "None assigned",
            *(_tres(run), _tres(run) if is_started else "", "SchedMain" if is_started else ""),
            *("", request.name),
        )
        rows.append("\x1f".join(cells))
    return rows


def _moment(start_s: int, at_s: int | None, unset: str = "Unknown") -> str:
    return unset if at_s is None else str(start_s + at_s)


def _clock(seconds: int) -> str:
    return f"{seconds // 3_600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _text(start: datetime, at_s: int | None) -> str:
    """Return a moment as Slurm prints it under TZ=UTC."""
    if at_s is None:
        return "Unknown"
    return f"{start.astimezone(UTC) + timedelta(seconds=at_s):%Y-%m-%dT%H:%M:%S}"


def _scontrol_jobs(fleet: Fleet, schedule: Schedule, start: datetime) -> list[str]:
    """Return what a poll while the jobs ran collected: a record a job run, with the indices."""
    lines = []
    for run in schedule.runs:
        if run.start_s is None:
            continue
        request = run.request
        groups: dict[str, list[str]] = {}
        for number in run.nodes:
            mine = [fleet.slurm_index(u) for u in run.units if fleet.unit_node[u] == number]
            groups.setdefault(ranges(sorted(mine)), []).append(fleet.nodes[number].name)
        cpus = request.cpus // len(run.nodes)
        each = request.gpus // len(run.nodes)
        held = " ".join(
            f"Nodes={hostlist(names)} CPU_IDs=0-{cpus - 1} Mem={MIB_PER_GPU * each} "
            f"GRES=gpu:{request.gres_type}:{each}(IDX:{indices})"
            for indices, names in groups.items()
        )
        uid = UIDS[request.user]
        lines.append(
            f"JobId={request.job_id} JobName={request.name} UserId={request.user}({uid}) "
            f"GroupId={request.account}({uid}) Account={request.account} QOS={request.qos} "
            f"JobState=RUNNING Reason=None Restarts={run.number} BatchFlag=1 "
            f"SubmitTime={_text(start, run.submit_s)} EligibleTime={_text(start, run.eligible_s)} "
            f"StartTime={_text(start, run.start_s)} Partition={request.partition} "
            f"NodeList={hostlist([fleet.nodes[n].name for n in run.nodes])} "
            f"NumNodes={len(run.nodes)} NumCPUs={request.cpus} TRES={_tres(run)} CoreSpec=* "
            f"JOB_GRES=gpu:{request.gres_type}:{request.gpus}   {held} MinCPUsNode=1"
        )
    return lines


def _scontrol_nodes(fleet: Fleet, schedule: Schedule, start: datetime, total_s: int) -> list[str]:
    """Return the nodes as they stood when the evidence ends."""
    held = np.zeros(len(fleet.nodes), dtype=np.int64)
    for run in schedule.runs:
        if run.start_s is not None and run.end_s is None:
            held[run.nodes] += run.request.cpus // len(run.nodes)
    away = {o.node: o for o in schedule.outages if o.end_s is None or o.end_s > total_s}
    lines = []
    for i, node in enumerate(fleet.nodes):
        state = "IDLE" if not held[i] else "ALLOCATED" if held[i] >= CPUS_PER_NODE else "MIXED"
        reason = ""
        if i in away and away[i].state != "reserved":
            state = EVENT_STATES.get(away[i].state, f"{state}+MAINT")
            reason = f" Reason={away[i].reason} [slurm@{_text(start, away[i].start_s)}]"
        lines.append(
            f"NodeName={node.name} Arch=x86_64 CoresPerSocket=48 CPUAlloc={held[i]} "
            f"CPUEfctv={CPUS_PER_NODE} CPUTot={CPUS_PER_NODE} CPULoad=12.4 AvailableFeatures="
            f"rack{node.rack + 1:02} ActiveFeatures=rack{node.rack + 1:02} Gres={fleet.gres(i)} "
            f"NodeAddr={node.name} NodeHostName={node.name} Version=24.11.5 OS=Linux "
            f"RealMemory={MEMORY_MIB} Sockets=2 Boards=1 State={state} ThreadsPerCore=2 "
            f"Partitions={','.join(fleet.partitions(i))}{reason}"
        )
    return lines


def _reservations(fleet: Fleet, schedule: Schedule, start: datetime, total_s: int) -> list[str]:
    groups: dict[tuple[str, str, int, int], list[str]] = {}
    for outage in schedule.outages:
        if outage.state in ("maintenance", "reserved"):
            end = total_s if outage.end_s is None else outage.end_s
            key = (outage.reason, outage.state, outage.start_s, end)
            groups.setdefault(key, []).append(fleet.nodes[outage.node].name)
    lines = []
    for number, ((reason, state, begin, end), names) in enumerate(sorted(groups.items())):
        flags = "MAINT,IGNORE_JOBS,SPEC_NODES" if state == "maintenance" else "SPEC_NODES"
        accounts = "(null)" if state == "maintenance" else "robotics"
        lines.append(
            f"ReservationName={reason}-{number} StartTime={_text(start, begin)} "
            f"EndTime={_text(start, end)} Duration={_clock(end - begin)} Nodes={hostlist(names)} "
            f"NodeCnt={len(names)} Features=(null) PartitionName=(null) Flags={flags} "
            f"Users=(null) Groups=(null) Accounts={accounts} State=INACTIVE"
        )
    return lines or ["No reservations in the system"]


def _events(fleet: Fleet, schedule: Schedule, start: datetime, total_s: int) -> list[str]:
    def end(outage: Outage) -> int | None:  # nobody knows one that is to come
        return None if outage.end_s is None or outage.end_s > total_s else outage.end_s

    lines = [
        "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User",
        f"{CLUSTER}||{_text(start, 0)}|Unknown||Cluster Registered TRES|",
    ]
    found: list[Outage] = [o for o in schedule.outages if o.state in EVENT_STATES]
    return lines + [
        f"{CLUSTER}|{fleet.nodes[outage.node].name}|{_text(start, outage.start_s)}|"
        f"{_text(start, end(outage))}|{EVENT_STATES[outage.state]}|{outage.reason}|slurm(64030)"
        for outage in sorted(found, key=lambda o: (o.start_s, o.node))
    ]


def _inventory(fleet: Fleet, start: datetime) -> list[str]:
    lines = [
        "cluster,node,gpu_index,slurm_index,gpu_uuid,pci_bus_id,gpu_model,mig,valid_from,"
        "rack,row,feed,driver_version,vbios_version,power_limit_w,slowdown_temperature_c"
    ]
    since = f"{start.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    first_unit = {int(g): u for u, g in reversed(list(enumerate(fleet.unit_gpu)))}
    for gpu, uuid in enumerate(fleet.gpu_uuids):
        number, index = divmod(gpu, GPUS_PER_NODE)
        node = fleet.nodes[number]
        mig = MIG_LAYOUT[index] if node.pool == "mig" else ""
        slot = fleet.slurm_index(first_unit[gpu])
        lines.append(
            f"{CLUSTER},{node.name},{index},{slot},{uuid},{pci_bus_id(gpu)},"
            f"{MODELS[node.model]},{mig},{since},{node.place},{','.join(VERSIONS[node.model])},"
            f"{POWER_LIMIT_W:.0f},{SLOWDOWN_TEMPERATURE_C}"
        )
    return lines
