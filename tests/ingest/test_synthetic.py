"""The made-up fleet: same bytes for a seed, formats that the ingestors take, all stories in."""

import hashlib
import json
from datetime import UTC, datetime

import polars as pl
import pytest

from goodput_app.demo import recipe
from goodput_ingest.run.ingest import ingest
from goodput_ingest.sources.registry import recognise
from goodput_ingest.synthetic import generate, imagine
from goodput_ingest.synthetic.fleet import build, hostlist
from goodput_ingest.synthetic.lives import rank_waits
from goodput_ingest.synthetic.workloads import WORKLOADS

START = datetime(2026, 11, 16, tzinfo=UTC)
GPUS, HOURS, SEED = 64, 6, 7


def fleet_in(folder, **changes):
    settings = {"gpus": GPUS, "hours": HOURS, "seed": SEED, "start": START} | changes
    generate(folder, **settings)
    return folder


def digests(folder):
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return fleet_in(tmp_path_factory.mktemp("fleet"))


@pytest.fixture(scope="module")
def truth(folder):
    return pl.read_parquet(folder / "truth.parquet")


@pytest.fixture(scope="module")
def notes(folder):
    return [json.loads(line) for line in (folder / "truth_notes.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def loaded(folder, new_store):
    store = new_store()
    summaries = [ingest(store, step.source, [step.path], step.options) for step in recipe(folder)]
    yield store, summaries
    store.close()


def test_the_same_seed_gives_the_same_bytes(folder, tmp_path):
    assert digests(fleet_in(tmp_path)) == digests(folder)


def test_another_seed_gives_another_fleet(folder, tmp_path):
    other, mine = digests(fleet_in(tmp_path, seed=8, telemetry="none")), digests(folder)

    same = [name for name, digest in other.items() if mine.get(name) == digest]
    names = ("rates", "tariffs", "budgets", "carbon", "power_feeds")  # do not hang on chance
    of_site = {f"{name}.csv" for name in names}
    assert set(same) - {"demo.toml"} == of_site


def test_without_telemetry_the_recipe_does_not_ask_for_it(tmp_path):
    fleet_in(tmp_path, telemetry="none")

    assert not (tmp_path / "telemetry").exists()
    assert "telemetry-parquet" not in {step.source for step in recipe(tmp_path)}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"gpus": 60}, "whole nodes of 8 GPUs"),
        ({"gpus": 8}, "at least 64"),
        ({"hours": 0}, "cannot be generated"),
        ({"interval_s": 7}, "cannot be generated"),
        ({"start": datetime(2026, 11, 16)}, "whole hour with a zone"),  # noqa: DTZ001 -- the point
        ({"start": datetime(2026, 11, 16, 0, 30, tzinfo=UTC)}, "whole hour"),
    ],
)
def test_a_fleet_that_cannot_be_is_refused(tmp_path, changes, said):
    with pytest.raises(ValueError, match=said):
        fleet_in(tmp_path, **changes)


def test_the_ingestors_take_every_line(loaded):
    _, summaries = loaded

    assert [s.rejects for s in summaries] == [0] * len(summaries)
    assert all(s.rows_new == s.rows > 0 and not s.unrecognised for s in summaries)
    tables = set().union(*(s.rows_by_table for s in summaries))
    assert tables == {
        "gpus", "gpu_instances", "job_runs", "nodes", "node_states", "holds", "reservations",
        "gpu_samples", "gpu_samples_other", "job_events", "gpu_events", "collectives", "rates",
        "tariffs", "budgets", "node_racks", "node_samples", "link_samples",
        "carbon", "power_feeds", "rank_map", "comm_transports", "nccl_benchmarks",
    }  # fmt: skip


def test_every_file_is_recognised_without_being_named(folder):
    for step in recipe(folder):
        files = [path for path in (step.path, *step.path.rglob("*")) if path.is_file()]
        assert {recognise(path).name for path in files} == {step.source}


def test_the_truth_covers_every_gpu_at_every_moment_once(truth):
    total_ms = HOURS * 3_600_000
    per_unit = truth.group_by("gpu_uuid", "gpu_instance").agg(
        pl.col("slices").first(),
        (pl.col("end_ms") - pl.col("start_ms")).sum().alias("ms"),
        (pl.col("end_ms") <= pl.col("start_ms")).any().alias("is_empty"),
        (pl.col("start_ms") < pl.col("end_ms").shift(1)).any().alias("overlaps"),
    )

    assert per_unit["ms"].unique().to_list() == [total_ms]
    assert not per_unit["is_empty"].any()
    assert not per_unit["overlaps"].any()
    slices = per_unit.group_by("gpu_uuid").agg(pl.col("slices").sum())["slices"]
    assert slices.len() == GPUS
    assert slices.unique().to_list() == [7]


def test_all_kinds_of_loss_are_in_it(truth):
    assert set(truth["category"]) >= {
        "down", "maintenance", "drained", "powered_off", "reserved_idle", "stranded",
        "idle_with_demand", "idle_no_demand", "suspended", "startup", "restore",
        "checkpoint_save", "data_stall", "lost_work", "fault_stall", "failed_without_progress",
        "idle_held", "teardown", "throttled", "straggler_wait", "exposed_comm", "step_unsplit",
        "productive", "at_risk",
    }  # fmt: skip
    assert {"busy_unclassified", "unknown"} <= set(truth["expected"])


def test_some_jobs_measure_their_communication_and_others_do_not(truth):
    hours = dict(
        truth.group_by("expected").agg((pl.col("end_ms") - pl.col("start_ms")).sum()).rows()
    )

    split = hours["productive"] + hours["exposed_comm"] + hours["straggler_wait"]
    assert 0.25 < split / (split + hours["step_unsplit"]) < 0.9
    assert 0.02 < hours["exposed_comm"] / split < 0.2


@pytest.fixture(scope="module")
def world():
    return imagine(gpus=256, hours=24, seed=SEED, start=START, interval_s=30)


def test_steps_take_what_those_of_their_workload_take(world):
    lives = [life for life in world.lives if life.attempts and not life.request.story]
    lengths = {
        name: [life.habits.step_ms / 1_000 for life in lives if life.request.workload == name]
        for name in WORKLOADS
    }

    for name, (shortest, longest) in {n: w.step_s for n, w in WORKLOADS.items()}.items():
        assert shortest <= min(lengths[name]) <= max(lengths[name]) <= longest, name
    everything = sorted(length for of_one in lengths.values() for length in of_one)
    assert everything[len(everything) // 10] < 1
    assert everything[-len(everything) // 20] > 30


def test_an_event_reports_as_many_steps_as_its_trainer_logs_together(loaded):
    store, _ = loaded
    distances = store.read(
        """select distinct step - lag(step) over (partition by run_id, attempt, rank order by step)
        from raw.job_events where event = 'step' qualify lag(step) over (
            partition by run_id, attempt, rank order by step) is not null"""
    ).to_series()

    assert set(distances) <= {
        steps for workload in WORKLOADS.values() for steps in workload.log_every
    }
    assert {1, 10} < set(distances)


def test_saves_keep_whole_events(world):
    attempts = [attempt for life in world.lives for attempt in life.attempts if attempt.durables]

    assert attempts
    for attempt in attempts:
        assert {step for step, _ in attempt.durables} <= set(attempt.steps.number.tolist())


def test_one_rank_reports_for_its_gang_or_all_do_with_waits_of_their_own(world):
    measured = [life for life in world.lives if life.habits.is_measured and life.request.gpus > 1]
    by_reports = {
        who: [life for life in measured if life.request.reports == who] for who in ("first", "all")
    }

    assert len(by_reports["first"]) > len(by_reports["all"]) > 0
    life = by_reports["all"][0]
    attempt = life.attempts[0]
    waits = [rank_waits(life, attempt, rank) for rank in range(len(life.run.units))]
    longest = attempt.steps.wait
    assert longest.any()
    assert all((own <= longest).all() for own in waits)
    assert (sum((own == 0).astype(int) for own in waits)[longest > 0] == 1).all()


def test_all_stories_are_in_the_fleet(notes):
    stories = {note["story"] for note in notes if note["kind"] == "story"}
    kinds = {note["kind"] for note in notes}

    assert stories >= {
        "llm-pretrain", "thermal-throttle", "straggling-rank", "periodic-gaps", "data-starved",
        "unused-allocation", "idle-notebook", "all-cpus", "suspended", "nccl-hang",
        "out-of-memory", "restart-in-job", "measured", "preempted", "ecc-then-xid",
    }  # fmt: skip
    assert kinds >= {"xid 79, node failed", "xid 48 after ecc", "silence: monitoring",
                     "silence: exporter", "outage"}  # fmt: skip


def test_one_infiniband_link_is_lost_while_several_nodes_run(loaded, notes):
    store, _ = loaded
    (note,) = [note for note in notes if note["kind"] == "lost link"]
    down = store.read(
        "select distinct node, device from raw.link_samples where kind = 'infiniband' and not is_up"
    )
    times = store.read(
        "select min(epoch_ms(ts)), max(epoch_ms(ts)) from raw.link_samples where is_up = false"
    )

    assert down.rows() == [(note["node"], note["device"])]
    assert times.row(0) == (note["from_ms"], note["to_ms"] - 600_000)


def test_a_requeued_job_keeps_its_id_and_gets_a_new_submit(loaded):
    store, _ = loaded
    records = store.read(
        """select state, submit_at, end_at, lead(submit_at) over (order by submit_at) as next_at
        from raw.job_runs where job_id_raw = '1000' order by submit_at"""
    )

    assert records["state"].to_list()[0] == "NODE_FAIL"
    assert records.height >= 2
    assert records["next_at"][0] == records["end_at"][0]


def test_sentinels_are_flagged_and_few(loaded):
    store, _ = loaded
    share = store.read(
        """select avg(is_flagged::integer) as share, count(*) - count(power_w) as no_power,
            max(power_w) as most, max(tensor_active_ratio) as tensor
        from raw.gpu_samples"""
    ).row(0, named=True)

    assert 0 < share["share"] < 0.001
    assert share["most"] < 710
    assert share["tensor"] <= 1


def test_energy_counters_only_grow_but_for_boots(loaded):
    store, _ = loaded
    falls = store.read(
        """select distinct gpu_uuid from (
            select gpu_uuid, energy_j - lag(energy_j) over
                (partition by gpu_uuid, gpu_instance order by ts) as grown
            from raw.gpu_samples) where grown < 0"""
    )
    booted = store.read(
        "select distinct node from raw.node_states where state in ('down', 'powered_off')"
    )

    assert 0 < falls.height <= 8 * booted.height


def test_nobody_hears_of_a_node_that_is_down(loaded):
    store, _ = loaded
    heard = store.read(
        """select count(*) as n from raw.gpu_samples as samples
        inner join raw.gpus as gpus using (gpu_uuid)
        inner join raw.node_states as states
            on gpus.node = states.node and states.state in ('down', 'powered_off')
            and samples.ts >= states.start_at and samples.ts < states.end_at"""
    )

    assert heard.item() == 0


def test_a_marked_row_of_memory_is_remapped_and_limits_are_read(loaded):
    store, _ = loaded
    rises = store.read(
        "select count(*) as gpus from (select gpu_uuid, max(value) - min(value) as rise "
        "from raw.gpu_samples_other where metric = 'rows_remapped_uncorrectable_total' "
        "group by gpu_uuid) where rise > 0"
    )
    marked = store.read(
        "select count(distinct pci_bus_id || node) from raw.gpu_events where code = 63"
    )

    assert 0 < rises.item() <= marked.item()
    limits = store.read(
        "select distinct value from raw.gpu_samples_other where metric = 'power_limit_enforced_w'"
    )
    assert limits["value"].to_list() == [700]


def test_gangs_say_which_transport_they_use(loaded):
    store, _ = loaded

    found = store.read("select distinct transport from raw.comm_transports order by 1")

    assert found["transport"].to_list() == ["NET/IB", "NET/IB/GDRDMA", "P2P/CUMEM"]


def test_one_node_is_slower_in_nccl_tests_since_a_date(loaded, notes):
    store, _ = loaded
    (note,) = [note for note in notes if note["kind"] == "slow node"]
    found = store.read(
        """select nodes[1] as node, epoch_ms(started_at) as at_ms, max(busbw_bytes_per_s) as best
        from raw.nccl_benchmarks group by all"""
    )

    slow = found.filter(pl.col("best") < 400e9)

    assert slow["node"].unique().to_list() == [note["node"]]
    assert slow["at_ms"].min() == note["from_ms"]
    healthy = found.filter((pl.col("node") == note["node"]) & (pl.col("best") >= 400e9))
    assert healthy["at_ms"].max() < note["from_ms"] < START.timestamp() * 1_000


def test_no_two_jobs_hold_one_gpu(truth):
    held = truth.filter(pl.col("job_id").is_not_null()).sort("gpu_uuid", "gpu_instance", "start_ms")
    before = held.select(pl.col("end_ms").shift(1).over("gpu_uuid", "gpu_instance")).to_series()

    assert (before.fill_null(0) <= held["start_ms"]).all()


def test_host_lists_are_as_slurm_writes_them():
    names = [node.name for node in build(256, 1).nodes]

    assert hostlist(names[:4]) == "hgx-01-[01-04]"
    assert hostlist([names[0], names[2], names[4]]) == "hgx-01-[01,03],hgx-02-01"
    assert hostlist([names[5]]) == "hgx-02-02"
    assert hostlist([]) == ""
