"""Accounting text: `sacct -P` of a made-up cluster, and what others would do with it.

Ours checks every line, expands host lists, reads TRES texts and makes typed rows; the alternatives
load the same file as columns of text and numbers, without checks, keys or rejects.
"""

import contextlib
import random

import duckdb
from tests.benchmarks.formats import Alternative, Files, Format

SEPARATOR = "\x1f"
FIELDS = (
    *("Cluster", "JobID", "JobIDRaw", "DBIndex", "User", "Account", "QOS", "Partition"),
    *("Reservation", "State", "ExitCode", "DerivedExitCode", "Reason", "Submit", "Eligible"),
    *("Start", "End", "ElapsedRaw", "Suspended", "TimelimitRaw", "NNodes", "NodeList", "ReqTRES"),
    *("AllocTRES", "Flags", "Comment", "JobName"),
)
STATES = (*["COMPLETED"] * 8, "FAILED", "TIMEOUT", "CANCELLED by 1001")
NODES = (1, 1, 1, 1, 2, 4, 16)  # of a job; most have one
SUBMITTED_S = 1_790_000_000


def record(number, chance):
    """Return a line as `sacct -P` prints a job that ended."""
    submit = SUBMITTED_S + number // 3
    start, elapsed = submit + chance.randrange(3_000), chance.randrange(20, 90_000)
    nodes, first = chance.choice(NODES), chance.randrange(1, 1_000)
    gpus = 8 * nodes if nodes > 1 else chance.choice((0, 1, 2, 4, 8))
    listed = f"node{first:04d}" if nodes == 1 else f"node[{first:04d}-{first + nodes - 1:04d}]"
    tracked = f"gres/gpu:h100={gpus},gres/gpu={gpus}," if gpus else ""
    tres = f"billing={gpus * 8},cpu={gpus * 16 or 4},{tracked}mem={gpus * 100 or 16}G,node={nodes}"
    values = (
        *("lab", number, number, 2_798_573_628_998_235_136 + number),
        *(f"user{chance.randrange(200)}", f"acct{chance.randrange(30)}", "normal", "gpu", ""),
        *(chance.choice(STATES), "0:0", "0:0", "None", submit, submit, start, start + elapsed),
        *(elapsed, "00:00:00", 1_440, nodes, listed, tres, tres, "STARTED_ON_SCHEDULE", ""),
        f"train-{chance.randrange(5_000)}",
    )
    return SEPARATOR.join(map(str, values))


def write_accounting(file, rows):
    """Write so many records of a made-up cluster, the same ones every time; return how many."""
    chance = random.Random(7)  # noqa: S311 -- a made-up cluster, no secret
    with file.open("w") as out:
        out.write(SEPARATOR.join(FIELDS) + "\n")
        out.writelines(record(number, chance) + "\n" for number in range(1, rows + 1))
    return rows


def duckdb_read_csv(file, folder):
    """Let the database read the file, types guessed."""
    with contextlib.closing(duckdb.connect(folder / "duckdb.duckdb")) as connection:
        connection.execute(
            "create table job_runs as select * from read_csv($1, delim = $2, header = true)",
            [str(file), SEPARATOR],
        )


SACCT = Files(
    Format(
        name="sacct text",
        source="slurm",
        unit="k rows",
        per_unit=1e3,
        budget_per_s=300_000,
        alternatives=(Alternative("DuckDB read_csv (texts)", duckdb_read_csv),),
        full=1_000_000,
        is_a_row_each=True,
    ),
    write_accounting,
)
