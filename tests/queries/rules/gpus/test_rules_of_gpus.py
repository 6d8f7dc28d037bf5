"""What scheduler and inventory say, rule by rule."""

from tests.queries.conftest import Cluster, shown_by


def pods(cluster, *starts):
    """Hold one GPU on node a from each of these seconds on, for job run 1."""
    for number, start in enumerate(starts):
        cluster.hold("1", f"a#{number}", method="pod", start_at=start)


def replaced(cluster):
    """Load eight GPUs of node a of which the fourth is replaced at 500 s."""
    placed = [(i, i, 0, 500 if i == 3 else None) for i in range(8)] + [(9, 3, 500, None)]
    rows = [{"gpu_uuid": f"GPU-{cluster.name}-{uuid}", "slurm_index": index, "valid_from_at": start,
             "valid_to_at": end} for uuid, index, start, end in placed]  # fmt: skip
    cluster.add("gpus", *rows, source="inventory", node="a", gpu_model="h100")


def instances(cluster, *layout):
    """Cut the GPU of node m: profile, slices, index of the scheduler, from and to."""
    rows = [{"gpu_instance": f"{profile}.0", "profile": profile, "compute_slices": slices,
             "slurm_index": index, "valid_from_at": start, "valid_to_at": end}
            for profile, slices, index, start, end in layout]  # fmt: skip
    cluster.add("gpu_instances", *rows, source="inventory", gpu_uuid="m#0")


# what it shows: what is loaded, in this order; GPU-seconds by category
test_ledger = shown_by({
    "idle free time without node evidence is unknown not idle": (
        lambda c: [c.node("a", 1), c.job("1", 0, 10, ["a"], 1), c.job("2", 20, 30, ["a"], 1)],
        {"unknown": 20, "free_unknown": 10}),
    "of a GPU that nobody lists one of the node is held": (
        lambda c: [c.node("a", 1, watched=100), c.job("1", 0, 100, ["a"], 1),
                   c.hold("1", "b#0", method="pod")], {"unknown": 100}),
    "a held GPU is never down": (
        lambda c: [c.node("a", 1, watched=100), c.state("a", "down", 0, 100),
                   c.job("1", 20, 60, ["a"], 1)], {"down": 60, "unknown": 40}),
    "a reservation that nobody uses is its owner's": (
        lambda c: [c.node("a", 2, watched=100),
                   c.add("reservations", name="r", nodes=["a"], owner="nlp", start_at=0,
                         end_at=50)], {"reserved_idle": 100, "idle_no_demand": 100}),
    "GPUs of a node whose CPUs are all held are stranded": (
        lambda c: [c.node("a", 4), c.add("nodes", node="a", cpus=16, partitions=["p"]),
                   c.watched(100), c.job("1", 0, 50, ["a"], 1, cpus=16)],
        {"unknown": 50, "stranded": 150, "idle_no_demand": 200}),
    "demand counts from eligible, not from submit": (
        lambda c: [c.node("a", 2, partitions=("p",), watched=100),
                   c.job("1", 60, 100, ["a"], 2, submit=0, eligible=40, partition="p",
                         gpus_requested=2)],
        {"idle_no_demand": 80, "idle_with_demand": 40, "unknown": 80}),
    "a job the controller forgot holds its GPU until the node goes down": (
        lambda c: [c.node("a", 1, watched=1000), c.state("a", "down", 300, 1000),
                   c.job("1", 0, None, ["a"], 1, "RUNNING")], {"unknown": 300, "down": 700}),
    "a running job holds as long as its record says it has run": (
        lambda c: [c.node("a", 1),
                   c.job("1", 0, None, ["a"], 1, "RUNNING", elapsed_s=140, suspended_s=10)],
        {"unknown": 150}),
    "a GPU repartitioned from 3g + 4g to 7g counts once": (
        lambda c: [c.node("m", 1, watched=1000),
                   instances(c, ("3g.40gb", 3, 0, 0, 500), ("4g.40gb", 4, 1, 0, 500),
                             ("7g.80gb", 7, 0, 500, None)),
                   c.job("1", 600, 700, ["m"], 1, gpu_type="7g.80gb")],
        {"idle_no_demand": 900, "unknown": 100}),
    "an assumed GPU is not idle while one that nobody has is active": (
        lambda c: [c.node("a", 2, watched=3600), c.job("1", 0, 3600, ["a"], 1),
                   c.samples("a#0", range(0, 3601, 10), lambda _: False),
                   c.samples("a#1", range(0, 3601, 10), lambda second: second > 1800)],
        {"idle_held": 1800, "unknown": 1800, "idle_no_demand": 3600}),
    "a replaced GPU breaks no hold": (
        lambda c: [replaced(c), c.watched(1000), c.job("1", 0, 400, ["a"], 8),
                   c.job("2", 500, 900, ["a"], 8, submit=500)],
        {"unknown": 6400, "idle_no_demand": 1600}),
    "two sources that name one GPU name one hold": (
        lambda c: [c.node("a", 2, watched=100), c.job("1", 0, 100, ["a"], 2),
                   *(c.hold("1", f"a#{gpu}", method="hpc_job", source=source)
                     for source in ("dcgm", "prometheus") for gpu in (0, 1))], {"unknown": 200}),
    "GPUs that another source names count where the accounting has none": (
        lambda c: [c.node("a", 8), c.job("1", 0, 3600, ["a"], None), c.watched(3600),
                   *(c.hold("1", f"a#{number}") for number in range(5))],
        {"unknown": 5 * 3600, "idle_no_demand": 3 * 3600}),
    # three GPUs from 0 s, the fourth from 60 s on: 180 GPU-s of waiting, and 60 GPU-s free
    "a gang waits until the last of its parts has its GPU": (
        lambda c: [c.node("a", 4, watched=200), c.job("1", 0, 200, ["a"], 4),
                   pods(c, 0, 0, 0, 60)],
        {"gang_wait": 180, "idle_no_demand": 60, "unknown": 4 * 140}),
    "a gang that never gets all it asked for waits to the end": (
        lambda c: [c.node("a", 4, watched=200), pods(c, 0, 10),
                   c.job("1", 0, None, ["a"], 2, "RUNNING", gpus_requested=4)],
        {"gang_wait": 390, "idle_no_demand": 410}),
    "waiting for the gang comes before what the job says of that time": (
        lambda c: [c.node("a", 2, watched=200), c.job("1", 0, 200, ["a"], 2), pods(c, 0, 50),
                   c.events("1", [{"event": "job.start", "t": 0}, {"event": "job.end", "t": 200}])],
        {"gang_wait": 50, "idle_no_demand": 50, "unknown": 300}),
}, read=Cluster.gpu_s)  # fmt: skip


def test_the_ledger_balances_after_a_gpu_left_the_inventorys_past(cluster):
    """The slot gives way to the GPU, and leaves its word that a GPU stood there before."""
    placed = {"node": "a", "slurm_index": 0, "gpu_model": "h100"}
    cluster.add("gpus", source="slurm", gpu_uuid="a#0", **placed)
    cluster.watched(4 * 3600)
    yield
    seen = {"gpu_uuid": cluster.gpu("GPU-0"), "gpu_index": 0, "valid_from_at": 9000}
    cluster.add("gpus", seen, source="nvml", **placed)
    yield
    assert cluster.gpu_s() == {"idle_no_demand": 4 * 3600}


def job_at_prices(cluster, model, gpus, hours, prices, until):
    if model:
        cluster.node("a", gpus, model=model)
    cluster.job("1", 0, 3600 * hours, ["a"], gpus, gpu_type=None if model else "h100")
    for of_model, price in prices.items():
        cluster.add("rates", gpu_model=of_model, price_per_gpu_h=price, valid_to_at=until)


SPENT = """select ledger.cost::double, ledger.unpriced_gpu_ms, price_per_gpu_h::double,
        cost_per_allocated_gpu_h::double
    from marts.ledger_by_category as ledger, marts.cost_per_gpu_hour where gpu_ms > 0"""
# what it shows: model of the inventory, GPUs and hours of a job, prices by model and until when;
# cost, GPU-ms without a price, price of a GPU-hour and cost of an allocated one
test_cost_of_allocated_time = shown_by({
    "an hour without a price is unpriced and never zero": (
        "h100", 1, 2, {"H100": 2.5}, 3600, (2.5, 3_600_000, 2.5, None)),
    "an A10 price is not an A100's": (
        "NVIDIA A100-SXM4-80GB", 1, 1, {"A10": 1, "A100": 3}, None, (3, 0, 3, 3)),
    "GPUs that only the scheduler knows have the model that it names": (
        None, 2, 2, {"H100": 2.5}, None, (10, 0, 2.5, 2.5)),
}, load=job_at_prices, read=lambda c: c.read(SPENT).row(0))  # fmt: skip
