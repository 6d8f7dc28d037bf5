"""Evidence of clusters that telemetry and job events alone report, and what they held."""

from tests.queries.conftest import START_MS


def readings(cluster, gpu, active, until=2000):
    """Read a GPU every ten seconds; `active` says from when to when it worked."""
    seconds = cluster.every(0, until)
    cluster.samples(gpu, seconds, lambda s: any(a < s <= b for a, b in active), "nvml")


def processes(cluster, gpu, pids, start, end, until=2000):
    """List the processes of a GPU every ten seconds: `pids` from start to end, else none."""
    seconds = cluster.every(0, until)
    cluster.processes(gpu, lambda s: pids if start <= s <= end else [], seconds)


def steps(start, end, each=10, first=1):
    """Return a start, steps of `each` seconds and no end."""
    begun = [{"t": start, "event": "job.start"}]
    return begun + [
        {"t": start + each * (i + 1), "event": "step", "step": first + i, "dur_s": float(each)}
        for i in range((end - start) // each)
    ]


def job(site, run, ranks, start=100, end=900, host="n", **more):
    """Load the events of a job: rank 0 its steps, the others their start, as `ranks` names them."""
    for rank, named in enumerate(ranks):
        named = {k: site.gpu(v) if k == "gpu_uuid" else v for k, v in named.items()}  # noqa: PLW2901
        reported = [{"t": start, "event": "job.start"}]
        if rank == 0:
            reported = [*steps(start, end), {"t": end, "event": "job.end"}]
        site.events(run, reported, attempt=None, host=host, rank=rank, **named, **more)


def holds(cluster):
    """Build; return GPU, owner, begin, end and method of what was held, in seconds."""
    cluster.build()
    assert cluster.violations() == 0
    sql = f"""select replace(gpu_uuid, '{cluster.name}/', ''), job_id,
            (holds.start_ms - {START_MS}) / 1000, (holds.end_ms - {START_MS}) / 1000, method
        from intermediate.int_holds as holds
        inner join intermediate.int_job_runs using (job_run_key)
        where holds.cluster = '{cluster.name}'
        order by all"""
    return cluster.read(sql).rows()


def phases(cluster):
    """Build; return GPU-seconds by category and phase."""
    cluster.build()
    spent = "category, phase, sum(gpu_ms) / 1000", "marts.ledger_pieces", "true group by all"
    return {(category, phase): gpu_s for category, phase, gpu_s in cluster.own(*spent)}
