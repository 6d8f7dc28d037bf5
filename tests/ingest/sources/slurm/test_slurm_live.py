"""A real Slurm on this machine, and what is read of it.

Debian's packages (slurmctld, slurmdbd, slurmd, mariadb-server, munge) and root are needed; without
them these tests are skipped.
"""

import contextlib
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.app.served import serving
from tests.ingest.sources.slurm.slurm_lab import MISSING, Lab
from tests.until import until

from goodput_ingest.sources.slurm.live import SlurmLive
from goodput_queries.database import LocalStore

pytestmark = [
    pytest.mark.machine,
    pytest.mark.skipif(bool(MISSING), reason=f"Slurm is not installed: {', '.join(MISSING)}"),
    pytest.mark.skipif(os.geteuid() != 0, reason="Slurm's daemons need root"),
    pytest.mark.xdist_group("slurm"),
]


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """Give a Slurm that runs; skip where this machine does not let it."""
    lab = Lab(tmp_path_factory.mktemp("slurm"))
    with pytest.MonkeyPatch.context() as patch:
        try:
            lab.start()
        except (OSError, subprocess.SubprocessError) as error:
            lab.stop()
            pytest.skip(f"Slurm cannot be started here: {error}")
        patch.setenv("SLURM_CONF", lab.environment["SLURM_CONF"])
        try:
            yield lab
        finally:
            lab.stop()


def now():
    return datetime.now(UTC).replace(tzinfo=None)


def load(store, source, reached=None):
    for batch in source.poll(reached or {}, now()):
        store.load(batch)


def reserve(lab, name, start="now", flags="maint,ignore_jobs"):
    """Reserve the node gpu2 for an hour."""
    lab.run(
        "scontrol", "create", "reservation", f"reservationname={name}", f"starttime={start}",
        "duration=60", "users=root", "nodes=gpu2", f"flags={flags}",
    )  # fmt: skip


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_job_is_seen_running_with_its_gpus_and_then_ended(lab, store, form):
    source = SlurmLive(form=form, backfill_s=3_600)
    job = lab.submit("sleep 600", "--gpus=2", "-J", 'odd "name"|x', "--comment=run=exp42")
    lab.until(lambda: lab.accounted(job) == "RUNNING")
    load(store, source)

    running = "select state, gpus, gpu_type, end_at, observed_at is not null from raw.job_runs"
    assert store.read(f"{running} where job_id = $1", [job]).rows() == [
        ("RUNNING", 2, "h100", None, True)
    ]
    holds = "select node, slurm_index from raw.holds where job_id_raw = $1 order by all"
    assert len(store.read(holds, [job]).rows()) == 2

    lab.run("scancel", job)
    lab.until(lambda: lab.accounted(job).startswith("CANCELLED"))
    load(store, source, {source.origin: now()})

    ended = "select state, cancelled_by is not null, end_at is not null, comment from raw.job_runs"
    assert store.read(f"{ended} where job_id = $1", [job]).rows() == [
        ("CANCELLED", True, True, "run=exp42")
    ]


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_waiting_job_is_listed_with_its_reason_and_nodes(lab, store, form):
    """It may start later, beyond the time that sacct is asked for."""
    job = lab.submit("true", "--gpus=1", "--begin=now+1hour", "--nodelist=gpu1", "--exclude=gpu2")
    lab.until(lambda: lab.accounted(job) == "PENDING")
    try:
        load(store, SlurmLive(form=form, backfill_s=3_600))
    finally:
        lab.run("scancel", job)

    waiting = "select state, gpus_requested, eligible_at > submit_at from raw.job_runs"
    assert store.read(f"{waiting} where job_id = $1", [job]).rows() == [("PENDING", 1, True)]
    asked = "select reason, requested_nodes, excluded_nodes from raw.job_requests"
    found = store.read(f"{asked} where job_id_raw = $1", [job]).rows()
    assert found == [("BeginTime", ["gpu1"], ["gpu2"])]


@pytest.mark.parametrize(("form", "drained"), [("text", "gpu1"), ("json", "gpu2")])
def test_nodes_are_listed_with_their_gpus_and_states(lab, store, form, drained):
    """Each form has a node of its own: one that was drained before may not answer for a while."""
    lab.run("scontrol", "update", f"nodename={drained}", "state=drain", "reason=Xid 79 | fell off")
    try:
        load(store, SlurmLive(form=form, backfill_s=3_600))
    finally:
        lab.run("scontrol", "update", f"nodename={drained}", "state=undrain")

    asked = "select node, cluster, gpus, cpus, partitions[1], features[1] from raw.nodes"
    rest = ("lab", 4, 4, "train", "nvlink")
    assert store.read(f"{asked} order by node").rows() == [("gpu1", *rest), ("gpu2", *rest)]
    ((state, reason),) = store.read(
        """select state, reason from raw.node_states
        where start_at = end_at and node = $1 qualify start_at = max(start_at) over ()""",
        [drained],
    ).rows()
    assert (state, "Xid 79" in reason) == ("drained", True)


def test_events_and_reservations_are_reported_with_their_times(lab, store):
    lab.run("scontrol", "update", "nodename=gpu1", "state=down", "reason=broken")
    reserve(lab, "service", "now+2hours", "maint")
    try:
        lab.until(lambda: "broken" in lab.run("sacctmgr", "-n", "-P", "show", "event"))
        load(store, SlurmLive(backfill_s=3_600))
    finally:
        lab.run("scontrol", "update", "nodename=gpu1", "state=resume")
        lab.run("scontrol", "delete", "reservationname=service")

    down = store.read(
        "select state, end_at from raw.node_states where node = 'gpu1' and reason = 'broken' "
        "and start_at is distinct from end_at"
    )
    assert down.rows() == [("down", None)]
    reserved = store.read("select name, nodes, owner, flags from raw.reservations").row(0)
    assert reserved[:3] == ("service", ["gpu2"], "root")
    assert "MAINT" in reserved[3]


def test_the_epilog_appends_the_report_of_a_job_to_its_output(lab):
    database, output = lab.folder / "fleet.duckdb", lab.folder / "job output.txt"
    job = lab.submit("sleep 600", "--gpus=2", "-J", "report", f"--output={output}")
    lab.until(lambda: lab.accounted(job) == "RUNNING")
    next_second()
    with contextlib.closing(LocalStore(database)) as store:
        load(store, SlurmLive(backfill_s=3_600))
        store.build()
    with serving(database) as server:
        assert server.get(f"/run/{job}").status_code == 200  # and what it read is kept
        (lab.folder / "goodput.env").write_text(
            f"GOODPUT_URL={server.url}\nGOODPUT_EPILOG_WITHIN_S=20\nPATH={Path(sys.executable).parent}:$PATH\n"
            f"PYTHONPATH={':'.join(filter(None, sys.path))}\n"
        )
        lab.run("scancel", job)
        lab.until(lambda: "Data until" in output.read_text())

    said = f"Job: {job}, run report ({job}), running. Goodput (% of allocated): not measured."
    assert said in output.read_text()
    lab.until(lab.is_all_idle)


def next_second():
    """Wait until Slurm, whose times are whole seconds, writes a later one."""
    begun = time.time()
    until(lambda: time.time() > begun + 1, "a second is over")


def test_a_database_that_is_started_later_learns_what_was_over_before(lab, store):
    """The controller forgets a reservation that ended and a node that came back."""
    lab.until(lab.is_all_idle)  # what is drained below was up
    reserve(lab, "upgrade")
    lab.run("scontrol", "update", "nodename=gpu1", "state=drain", "reason=cable")
    next_second()
    lab.run("scontrol", "delete", "reservationname=upgrade")
    lab.run("scontrol", "update", "nodename=gpu1", "state=undrain")

    def is_over():
        events = lab.run("sacctmgr", "-n", "-P", "show", "event", "start=now-1hour")
        return any("cable" in row and "Unknown" not in row for row in events.splitlines())

    lab.until(is_over)

    load(store, SlurmLive(backfill_s=3_600))

    past = """select nodes, contains(flags, 'MAINT'), end_at - start_at < interval 1 minute
        from raw.reservations where name = 'upgrade'"""
    assert store.read(past).rows() == [(["gpu2"], True, True)]
    drained = "select state, end_at > start_at from raw.node_states where reason = $1"
    assert ("drained", True) in store.read(drained, ["cable"]).rows()


def test_a_maintenance_that_is_cut_short_ends_when_it_did(lab, store):
    reserve(lab, "short")
    source = SlurmLive(backfill_s=3_600)
    load(store, source)
    next_second()
    lab.run("scontrol", "delete", "reservationname=short")
    next_second()
    load(store, source, {source.origin: now()})

    length = "select end_at - start_at < interval 1 minute from raw.reservations where name = $1"
    assert store.read(length, ["short"]).rows() == [(True,)]


def test_asking_again_changes_nothing_and_doctor_finds_nothing_odd(lab, store):
    source, moment = SlurmLive(backfill_s=3_600), now()
    job = lab.submit("true", "--gpus=1")
    lab.until(lambda: lab.accounted(job) == "COMPLETED")
    for batch in source.poll({}, moment):
        store.load(batch)
    before = store.read("select * from raw.job_runs order by all")
    assert job in before["job_id"].to_list()

    assert source.probe() == []
    assert all(store.load(batch).rows_new == 0 for batch in source.poll({}, moment))
    assert store.read("select * from raw.job_runs order by all").equals(before)
