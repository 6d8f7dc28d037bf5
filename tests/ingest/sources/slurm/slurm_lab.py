"""A Slurm of the tests' own: controller, database, two nodes that pretend to have GPUs."""

import contextlib
import os
import shutil
import socket
import stat
import subprocess
from pathlib import Path

from tests.until import until

EPILOG = Path(__file__).parents[4] / "deploy" / "slurm" / "epilog.sh"
NEEDED = ("munged", "mariadbd", "mariadb-install-db", "slurmdbd", "slurmctld", "slurmd", "sacct")
SBIN = "/usr/sbin:/sbin"
MISSING = [name for name in NEEDED if not shutil.which(name, path=f"{os.environ['PATH']}:{SBIN}")]
WAIT_S = 30.0
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
NodeName=DEFAULT CPUs=4 RealMemory=1000 Gres=gpu:h100:4 Features=nvlink
NodeName=gpu1 Port={node1} NodeAddr=127.0.0.1 NodeHostname={host}
NodeName=gpu2 Port={node2} NodeAddr=127.0.0.1 NodeHostname={host}
Epilog={folder}/epilog.sh
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
        epilog, env = self.folder / "epilog.sh", self.folder / "goodput.env"
        epilog.write_text(EPILOG.read_text("utf-8").replace("/etc/slurm/goodput.env", str(env)))
        epilog.chmod(0o755)
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
            "gpu1", "idle", "gpu2", "idle",
        ]  # fmt: skip

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
