"""A real Slurm on this machine: controller, database, two nodes that pretend to have GPUs.

Debian's packages (slurmctld, slurmdbd, slurmd, mariadb-server, munge) and root are needed; without
them these tests are skipped.
"""

import contextlib
import os
import shutil
import socket
import stat
import subprocess
import time
from datetime import UTC, datetime, timedelta

import pytest
from tests.until import until

from goodput_ingest.sources.slurm.live import SlurmLive
from goodput_queries.errors import IngestError

NEEDED = ("munged", "mariadbd", "mariadb-install-db", "slurmdbd", "slurmctld", "slurmd", "sacct")
SBIN = "/usr/sbin:/sbin"
MISSING = [name for name in NEEDED if not shutil.which(name, path=f"{os.environ['PATH']}:{SBIN}")]
WAIT_S = 30.0
pytestmark = [
    pytest.mark.machine,
    pytest.mark.skipif(bool(MISSING), reason=f"Slurm is not installed: {', '.join(MISSING)}"),
    pytest.mark.skipif(os.geteuid() != 0, reason="Slurm's daemons need root"),
    pytest.mark.xdist_group("slurm"),
]
SLURM_CONF = """
ClusterName=lab
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmdTimeout=300
MailProg=/bin/true
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,bf_interval=1
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={database}
AccountingStoragePass={folder}/munge.socket
AccountingStorageTRES=gres/gpu,gres/gpu:h100
AccountingStoreFlags=job_comment
GresTypes=gpu
SlurmdParameters=config_overrides
NodeName=DEFAULT CPUs=4 RealMemory=1000 Gres=gpu:h100:4
NodeName=gpu1 Port={node1} NodeAddr=127.0.0.1 NodeHostname={host}
NodeName=gpu2 Port={node2} NodeAddr=127.0.0.1 NodeHostname={host}
PartitionName=train Nodes=gpu[1-2] Default=YES MaxTime=60 State=UP
"""
SLURMDBD_CONF = """
DbdHost=localhost
DbdPort={database}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={tables}
StorageUser=slurm
StoragePass=lab
StorageLoc=slurm_acct_db
LogFile={folder}/slurmdbd.log
PidFile={folder}/slurmdbd.pid
"""


class Lab:
    """Slurm's daemons in a folder of their own, stopped by their process ids."""

    def __init__(self, folder):
        self.folder = folder
        self.environment = os.environ | {
            "SLURM_CONF": str(folder / "slurm.conf"),
            "PATH": f"{os.environ['PATH']}:{SBIN}",
        }
        self.daemons = []

    def start(self):
        """Start everything; raises CalledProcessError or TimeoutError where it does not come up."""
        ports = dict(
            zip(("controller", "database", "tables", "node1", "node2"), _ports(5), strict=True)
        )
        facts = {"folder": self.folder, "host": socket.gethostname().split(".")[0]}
        for name, text in (("slurm.conf", SLURM_CONF), ("slurmdbd.conf", SLURMDBD_CONF)):
            (self.folder / name).write_text(text.format(**facts, **ports))
            (self.folder / name).chmod(0o600)
        (self.folder / "gres.conf").write_text(
            f"NodeName=gpu[1-2] Name=gpu Type=h100 File={self.folder}/gpu[0-3]\n"
        )
        (self.folder / "state").mkdir()
        for index in range(4):
            os.mknod(self.folder / f"gpu{index}", stat.S_IFCHR | 0o666, os.makedev(1, 3))
        self._start_munge()
        self._start_tables(ports["tables"])
        self.daemon("slurmdbd", "-D")
        self.until(lambda: self.run("sacctmgr", "-i", "add", "cluster", "lab"))
        self.run("sacctmgr", "-i", "add", "account", "nlp")
        self.run("sacctmgr", "-i", "add", "user", "root", "account=nlp")
        self.daemon("slurmctld", "-D", "-c")
        for node in ("gpu1", "gpu2"):
            (self.folder / f"spool-{node}").mkdir()
            self.daemon("slurmd", "-D", "-N", node)
        self.until(self.is_all_idle)

    def _start_munge(self):
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        files = {"socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
        self.daemon(
            "munged", "--foreground", "--force", f"--key-file={key}",
            *(f"--{option}={self.folder}/munge.{end}" for option, end in files.items()),
        )  # fmt: skip
        self.until((self.folder / "munge.socket").exists)

    def _start_tables(self, port):
        data = self.folder / "tables"
        self.run(
            "mariadb-install-db", "--no-defaults", "--user=root", f"--datadir={data}",
            "--skip-test-db", "--auth-root-authentication-method=normal",
        )  # fmt: skip
        self.daemon(
            "mariadbd", "--no-defaults", "--user=root", f"--datadir={data}", f"--port={port}",
            "--bind-address=127.0.0.1", f"--socket={self.folder}/tables.socket",
            f"--pid-file={self.folder}/tables.pid", "--innodb-buffer-pool-size=64M",
        )  # fmt: skip
        user = "slurm@'127.0.0.1'"
        sql = f"create user {user} identified by 'lab'; grant all on *.* to {user};"
        socket_option = f"--socket={self.folder}/tables.socket"
        self.until(lambda: self.run("mariadb", "--no-defaults", "-uroot", socket_option, "-e", sql))

    def daemon(self, *command):
        """Start a daemon that stays until the lab stops."""
        with (self.folder / f"{command[0]}.output").open("ab") as output:
            self.daemons.append(
                subprocess.Popen(command, env=self.environment, stdout=output, stderr=output)
            )

    def run(self, *command):
        """Return what a command printed; raises CalledProcessError where it fails."""
        done = subprocess.run(
            command, env=self.environment, check=True, capture_output=True, text=True,
            timeout=WAIT_S,
        )  # fmt: skip
        return done.stdout

    def until(self, is_so):
        """Ask until the answer is not false; what fails is asked again, at most WAIT_S."""

        def holds():
            try:
                return is_so() is not False
            except subprocess.CalledProcessError:
                return False

        until(holds, "Slurm says so", within_s=WAIT_S)

    def is_all_idle(self):
        """Say whether both nodes wait for jobs."""
        return self.run("sinfo", "-N", "-h", "-o", "%N %t").split() == [
            "gpu1",
            "idle",
            "gpu2",
            "idle",
        ]

    def submit(self, script, *arguments):
        """Submit a job and return its id."""
        return self.run(
            "sbatch", "--parsable", f"--chdir={self.folder}", "--output=/dev/null", "-t", "10",
            *arguments, f"--wrap={script}",
        ).strip()  # fmt: skip

    def accounted(self, job):
        """Return a job's state as a question for a time finds it: later than the controller."""
        period = ("-S", "now-1hour", "-E", "now+30days")
        shown = self.run("sacct", "-a", "-X", "-n", "-P", *period, "-o", "JobID,State")
        return dict(line.split("|") for line in shown.splitlines()).get(job, "")

    def stop(self):
        """Stop the daemons, the last one first."""
        for daemon in reversed(self.daemons):
            daemon.terminate()
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()


def _ports(number):
    """Return ports that nobody listens on now."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(number)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


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

    nodes = store.read("select cluster, node, gpus, cpus, partitions from raw.nodes order by node")
    assert nodes.rows() == [("lab", "gpu1", 4, 4, ["train"]), ("lab", "gpu2", 4, 4, ["train"])]
    ((state, reason),) = store.read(
        """select state, reason from raw.node_states
        where start_at = end_at and node = $1 qualify start_at = max(start_at) over ()""",
        [drained],
    ).rows()
    assert state == "drained"
    assert "Xid 79" in reason


def test_events_and_reservations_are_reported_with_their_times(lab, store):
    lab.run("scontrol", "update", "nodename=gpu1", "state=down", "reason=broken")
    lab.run(
        "scontrol", "create", "reservation", "reservationname=service", "starttime=now+2hours",
        "duration=60", "users=root", "nodes=gpu2", "flags=maint",
    )  # fmt: skip
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


def next_second():
    """Wait until Slurm, whose times are whole seconds, writes a later one."""
    begun = time.time()
    until(lambda: time.time() > begun + 1, "a second is over")


def test_a_database_that_is_started_later_learns_what_was_over_before(lab, store):
    """The controller forgets a reservation that ended and a node that came back."""
    lab.until(lab.is_all_idle)  # what is drained below was up
    lab.run(
        "scontrol", "create", "reservation", "reservationname=upgrade", "starttime=now",
        "duration=60", "users=root", "nodes=gpu2", "flags=maint,ignore_jobs",
    )  # fmt: skip
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
    lab.run(
        "scontrol", "create", "reservation", "reservationname=short", "starttime=now",
        "duration=60", "users=root", "nodes=gpu2", "flags=maint,ignore_jobs",
    )  # fmt: skip
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


def test_a_controller_that_is_gone_is_an_error_of_one_sentence(lab, monkeypatch):
    text = (lab.folder / "slurm.conf").read_text().replace("SlurmctldPort=", "SlurmctldPort=1#")
    other = lab.folder / "other"
    other.mkdir()
    (other / "slurm.conf").write_text(text + "MessageTimeout=2\nSlurmctldTimeout=2\n")
    monkeypatch.setenv("SLURM_CONF", str(other / "slurm.conf"))

    with pytest.raises(IngestError, match=r"^slurm: scontrol (failed|took longer)"):
        next(SlurmLive(timeout_s=20).poll({}, now() - timedelta(hours=1)))
