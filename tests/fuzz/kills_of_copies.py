"""Kill commands that copy a database or write into a lake; a copy is whole, or not there.

    python -m tests.fuzz.kills_of_copies --kills 24 --seed 1

Killed (SIGKILL) are the commands of `kills_of_copies.toml`, on the recorded session. A restored
database is the one before or the backup; the others, and the lake, give in the end the ledger of
one that nobody disturbed. Takes some seconds a kill.
"""

import contextlib
import gzip
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path

from tests.fuzz.commands import Commands, options, report
from tests.fuzz.kills import SAMPLE

from goodput_queries.check import check
from goodput_queries.database import LocalStore
from goodput_synthetic.demo import recipe

LEDGER = "select category, sum(gpu_ms)::bigint from marts.ledger_by_category group by 1 order by 1"
KINDS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
DATABASES = ("restored", "kept", "pruned")


def main(arguments=None):
    """Kill, look at what is left, finish and compare; return 1 where something is not whole."""
    kills, chance = options(arguments, "tests.fuzz.kills_of_copies", __doc__, kills=24)
    with tempfile.TemporaryDirectory(prefix="goodput-kills-") as folder:
        site = _Copies(Path(folder))
        problems = []
        for number in range(kills):
            kind = list(KINDS)[number % len(KINDS)]
            site.kill(kind, chance)
            problems += [f"after a killed {kind}: {problem}" for problem in site.problems()]
        for kind in KINDS:
            site.finish(kind)
        problems += site.problems(is_finished=True)
    at_work = ", ".join(f"{count} in {kind}" for kind, count in site.kills.items())
    sys.stdout.write(f"killed at work: {at_work}\n")
    return report(problems, "all whole")


def _commands(texts):
    return [text.format(sample=SAMPLE).split() for text in texts]


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
        for name in DATABASES:
            shutil.copyfile(folder / "safe.duckdb", folder / f"{name}.duckdb")
        (folder / "events").mkdir()
        events = gzip.decompress((SAMPLE / "h200x4-a/job_events.jsonl.gz").read_bytes())
        (folder / "events" / "a.jsonl").write_bytes(events)
        self.ledger = self._ledger("fleet.duckdb")
        self.commands = {kind: _commands(given["commands"]) for kind, given in KINDS.items()}
        self.commands["ingest"] = [[*load, *lake] for load in loads]

    def kill(self, kind, chance):
        """Kill one of the commands of a kind at any moment after its start."""
        for name in ("copy.duckdb", "copy.zip"):
            (self.folder / name).unlink(missing_ok=True)
        *before, command = self._commands(kind)
        if kind == "ingest":
            before, command = [], chance.choice(self.commands[kind])
        for one in before:
            self.run(one)
        with self.start(command) as victim:
            self.kills[kind] += self.is_cut(victim, command, chance)
            victim.kill()
        for one in _commands(KINDS[kind].get("again", [])):
            self.run(one)

    def _commands(self, kind):
        """Return the commands of a kind, once its settings are there."""
        (self.folder / "goodput.toml").write_text(KINDS[kind].get("settings", ""))
        return self.commands[kind]

    def finish(self, kind):
        """Run the commands of a kind undisturbed."""
        for command in self._commands(kind):
            if kind in ("backup", "bundle"):
                (self.folder / command[1]).unlink(missing_ok=True)
            self.run(command)
        for one in _commands(KINDS[kind].get("again", [])):
            self.run(one)

    def problems(self, *, is_finished=False):
        """Return what is there and not whole, after all is done also what of the lake is lost."""
        names = ["copy.duckdb", *(f"{name}.duckdb" for name in DATABASES)]
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
