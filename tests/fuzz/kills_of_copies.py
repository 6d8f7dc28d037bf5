"""Kill commands that copy a database or write into a lake; a copy is whole, or not there.

    python -m tests.fuzz.kills_of_copies --kills 24 --seed 1

Killed (SIGKILL) are backup, bundle, restore, and the lake's ingest, publish and compact, on the
recorded session. A restored database is the one before or the backup; the lake gives in the end
the ledger of one that nobody disturbed. Takes some seconds a kill.
"""

import contextlib
import shutil
import sys
import tempfile
from pathlib import Path

from tests.fuzz.commands import Commands, options, report
from tests.fuzz.kills import SAMPLE

from goodput_queries.check import check
from goodput_queries.database import LocalStore
from goodput_synthetic.demo import recipe

LEDGER = "select category, sum(gpu_ms)::bigint from marts.ledger_by_category group by 1 order by 1"
KINDS = ("backup", "bundle", "restore", "ingest", "publish", "compact")


def main(arguments=None):
    """Kill, look at what is left, finish and compare; return 1 where something is not whole."""
    kills, chance = options(arguments, "tests.fuzz.kills_of_copies", __doc__, kills=24)
    with tempfile.TemporaryDirectory(prefix="goodput-kills-") as folder:
        site = _Copies(Path(folder))
        problems = []
        for number in range(kills):
            kind = KINDS[number % len(KINDS)]
            site.kill(kind, chance)
            problems += [f"after a killed {kind}: {problem}" for problem in site.problems()]
        for kind in KINDS:
            site.finish(kind)
        problems += site.problems(is_finished=True)
    at_work = ", ".join(f"{count} in {kind}" for kind, count in site.kills.items())
    sys.stdout.write(f"killed at work: {at_work}\n")
    return report(problems, "all whole")


class _Copies(Commands):
    """A database, what is copied of it, and a lake that the same files are loaded into."""

    def __init__(self, folder):
        super().__init__(folder)
        self.kills = dict.fromkeys(KINDS, 0)
        database = ["--db", str(folder / "fleet.duckdb")]
        lake = ["--lake", str(folder / "lake")]
        loads = [
            ["ingest", step.source, str(step.path), "--cluster", step.options.cluster or "lab"]
            for step in recipe(SAMPLE)
        ]
        for load in loads:
            self.run([*load, *database])
        self.run(["build", *database])
        self.run(["lake", "create", *lake])
        self.run(["backup", str(folder / "safe.duckdb"), *database])
        shutil.copyfile(folder / "safe.duckdb", folder / "restored.duckdb")
        self.ledger = self._ledger("fleet.duckdb")
        self.commands = {
            "backup": [["backup", str(folder / "copy.duckdb"), *database]],
            "bundle": [["bundle", str(folder / "copy.zip"), *database]],
            "restore": [["restore", str(folder / "safe.duckdb"), "--replace", "--db",
                         str(folder / "restored.duckdb")]],
            "ingest": [[*load, *lake] for load in loads],
            "publish": [["build", *lake, "--db", str(folder / "of_lake.duckdb")],
                        ["lake", "publish", *lake, "--db", str(folder / "of_lake.duckdb")]],
            "compact": [["lake", "compact", *lake]],
        }  # fmt: skip

    def kill(self, kind, chance):
        """Kill one of the commands of a kind at any moment after its start."""
        for name in ("copy.duckdb", "copy.zip"):
            (self.folder / name).unlink(missing_ok=True)
        *before, command = self.commands[kind]
        if kind == "ingest":
            before, command = [], chance.choice(self.commands[kind])
        for one in before:
            self.run(one)
        with self.start(command) as victim:
            self.kills[kind] += self.is_cut(victim, command, chance)
            victim.kill()

    def finish(self, kind):
        """Run the commands of a kind undisturbed."""
        for command in self.commands[kind]:
            if kind in ("backup", "bundle"):
                Path(command[1]).unlink(missing_ok=True)
            self.run(command)

    def problems(self, *, is_finished=False):
        """Return what is there and not whole, after all is done also what of the lake is lost."""
        names = ["copy.duckdb", "restored.duckdb"]
        if is_finished:
            names.append("of_lake.duckdb")
            self.run(["build", *self.commands["publish"][0][1:]])
        elif not (self.folder / "restored.duckdb").exists():
            return ["there is no database where one was restored"]
        found = [
            f"{name}: another ledger, or its checks fail"
            for name in names
            if (self.folder / name).exists() and self._ledger(name) != self.ledger
        ]
        if (bundle := self.folder / "copy.zip").exists():
            target = self.folder / "of_bundle.duckdb"
            target.unlink(missing_ok=True)
            self.run(["ingest", "auto", str(bundle), "--db", str(target)])
            self.run(["build", "--db", str(target)])
            if self._ledger(target.name) != self.ledger:
                found.append("copy.zip: another ledger")
        return found

    def _ledger(self, name):
        with contextlib.closing(LocalStore(self.folder / name)) as store:
            if check(store)["violations"].sum():
                return None
            return store.read(LEDGER).rows()


if __name__ == "__main__":
    raise SystemExit(main())
