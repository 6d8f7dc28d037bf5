"""Kill commands at any moment, finish the work, and compare with a database that nobody disturbed.

    python -m tests.fuzz.kills --kills 60 --seed 1

Killed (SIGKILL) are ingest, build, a server under an ingest, and the report that closes a day, on
the recorded session. Rows of every source, the ledger and the closed day must be the same as those
of undisturbed commands, and `check` clean. Takes some seconds a kill.
"""

import contextlib
import sys
import tempfile
from pathlib import Path

import polars as pl
from tests.fuzz.commands import PATIENCE_S, Commands, options, report

from goodput_queries.catalog import models
from goodput_queries.check import check
from goodput_queries.database import LocalStore
from goodput_synthetic.demo import recipe

SAMPLE = Path(__file__).parents[2] / "sample_data"
DAY = "2026-11-20"
OF_ONE_LOAD = {"load_sequence", "sequence", "loaded_at"}  # differ with the order of loads


def main(arguments=None):
    """Kill, finish, compare; return 1 where something differs."""
    kills, chance = options(arguments, "tests.fuzz.kills", __doc__, kills=60)
    with tempfile.TemporaryDirectory(prefix="goodput-kills-") as folder:
        calm = _Site(Path(folder, "calm"))
        calm.finish()
        calm.close_day()
        killed = _Site(Path(folder, "killed"), took_s=calm.took_s)
        for kind in ("ingest", "build", "serve"):
            killed.kill(kind, kills // 4, chance)
        killed.finish()  # a day that closes without all evidence has corrections
        killed.kill("report", kills - 3 * (kills // 4), chance)
        killed.finish()
        killed.close_day()
        sys.stdout.write(", ".join(f"{n} in {kind}" for kind, n in killed.kills.items()) + "\n")
        problems = _differences(calm.database, killed.database)
    return report(problems, "nothing lost or doubled")


class _Site(Commands):
    """A database of its own, and the commands that fill it."""

    def __init__(self, folder, took_s=None):
        super().__init__(folder, took_s)
        folder.mkdir()
        self.database = folder / "fleet.duckdb"
        self.kills = dict.fromkeys(("ingest", "build", "serve", "report"), 0)
        self.ingests = [
            ["ingest", step.source, str(step.path), *_cluster(step.options.cluster)]
            for step in recipe(SAMPLE)
        ]
        self.report = ["report", "--date", DAY, "--close", "--formats", "csv", "--out", str(folder)]

    def finish(self):
        """Ingest and build what is left, undisturbed."""
        for command in (*self.ingests, ["build"]):
            self.run(command)

    def close_day(self):
        """Close the recorded day."""
        self.run(self.report)

    def kill(self, kind, times, chance):
        """Kill as many commands of a kind, at any moment after their start."""
        while self.kills[kind] < times:
            command = {
                "ingest": chance.choice(self.ingests), "serve": chance.choice(self.ingests),
                "build": ["build", *(["--full"] if chance.random() < 0.5 else [])],
                "report": self.report,
            }[kind]  # fmt: skip
            self.kills[kind] += self._is_killed(kind, command, chance)

    def _is_killed(self, kind, command, chance):
        """Kill a command, or the server under it; say whether it was still at work."""
        with contextlib.ExitStack() as stack:
            client = None
            victim = stack.enter_context(
                self.start(["serve", "--port", "0"] if kind == "serve" else command)
            )
            if kind == "serve":
                assert victim.stdout is not None
                victim.stdout.readline()
                client = stack.enter_context(self.start(command))
            is_at_work = self.is_cut(client or victim, command, chance)
            victim.kill()
            if client is not None:
                client.communicate(timeout=PATIENCE_S)
        return is_at_work

    def start(self, command):
        """Start a command on the database."""
        return super().start([*command, "--db", str(self.database)])


def _cluster(name):
    return [] if name is None else ["--cluster", name]


def _differences(calm, killed):
    """Return what one database has and the other has not, and what `check` says."""
    found, broken = [], []
    for database in (calm, killed):
        with contextlib.closing(LocalStore(database)) as store:
            found.append(_contents(store))
            violations = check(store).filter(pl.col("violations") > 0)
            broken += [f"check of {database.parent.name}: {row}" for row in violations.rows()]
    return broken + [
        f"{table}: {len(rows)} rows undisturbed, {len(found[1][table])} rows after kills, "
        f"{sum(one != other for one, other in zip(rows, found[1][table], strict=False))} differ"
        for table, rows in found[0].items()
        if rows != found[1][table]
    ]


def _contents(store):
    """Return the rows of every source, of the ledger and of closed days, in one order."""
    tables = [
        model.qualified_name
        for model in models.base_tables().values()
        if model.layer in {"raw", "billing"}
    ]
    found = {}
    for table in (*tables, "intermediate.int_ledger_segments"):
        columns = store.read(f"select * from {table} limit 0").columns
        kept = ", ".join(f'"{name}"' for name in columns if name not in OF_ONE_LOAD)
        found[table] = store.read(f"select {kept} from {table} order by all").rows()
    if not (found["intermediate.int_ledger_segments"] and found["billing.statement_rows"]):
        raise RuntimeError("there is nothing to compare")
    return found


if __name__ == "__main__":
    raise SystemExit(main())
