"""`make findings`: precision and recall of each rule over made-up fleets with their truth.

    python -m tests.findings --fleets 20 --seed 500
    python -m tests.findings --fleets 20 --seed 1011 --out RATES
    python -m tests.findings --of rows --fleets 20 --seed 2001 --out RATES
    python -m tests.findings --of sites --fleets 5 --seed 4001
    python -m tests.findings --quiet

The first scores losses on eventful fleets, anomalies on fleets with labelled cases (`faults.py`)
and rules whose evidence is rows of a table (`rows.py`), the second and third also write what the
product shows beside the confidence of a finding (RATES: `reference/finding_rates.csv`, on seeds
nobody tuned on), the fourth scores losses on sites with Slurm, with Kubernetes and without a
scheduler in one database, the last lists the pages and tickets of a fleet of 512 GPUs in which
nothing happens. Fleets are read in from the files that
sites have; the truth is what was put into them. Losses near the limit of a rule count neither way.
"""

import argparse
import contextlib
import csv
import math
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from tests.findings import faults, rows
from tests.findings.planted import Case
from tests.findings.truth import (
    CATEGORIES,
    FAILURES,
    FLEET,
    OF_RUNS,
    STORIES,
    Expected,
    expected,
    labelled,
    lost_ms,
)  # fmt: skip
from tests.fleets import plans
from tests.fleets.generate import generate, read_in

from goodput_queries.catalog.rules import rules
from goodput_queries.database import LocalStore
from goodput_queries.scope import Scope
from goodput_synthetic.fleet.plans import on_kubernetes

START = datetime(2026, 11, 17, 12, tzinfo=UTC)


KINDS = ("losses", "anomalies", "rows")
BY_RUN = {*CATEGORIES, *STORIES, *OF_RUNS, *FAILURES.values()}
OF_SCHEDULERS = {*("gang_wait", "node_down", "node_drained"), *FLEET}
SITES = {  # what no evidence of the site shows, or shows as another end of a run
    "slurm": set(),
    "kubernetes": OF_SCHEDULERS,
    "none": {*OF_SCHEDULERS, *FAILURES.values(), "unclassified_time"} - {"job_failure"},
}
ROWS_GPUS, ROWS_HOURS = 64, 12
Found = list[tuple[str, str]]  # subject and confidence of each finding


@dataclass
class Score:
    """What was found of a rule rightly and wrongly, by confidence; how many cases, and missed."""

    right: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    cases: int = 0
    missed: int = 0

    def add(self, found: Found, truth: Expected) -> tuple[set[str], set[str]]:
        """Count a fleet; return what was found wrongly and what was missed."""
        wrong = [(subject, w) for subject, w in found if subject not in truth.must | truth.may]
        missed = truth.must - {subject for subject, _ in found}
        self.right.update(word for subject, word in found if subject in truth.must)
        self.wrong.update(word for _, word in wrong)
        self.cases += len(truth.must)
        self.missed += len(missed)
        return {subject for subject, _ in wrong}, missed

    def ratios(self) -> tuple[float, float]:
        """Return precision and recall; NaN where there is nothing to go by."""
        right, wrong = self.right.total(), self.wrong.total()
        precision = right / (right + wrong) if right + wrong else math.nan
        return precision, 1 - self.missed / self.cases if self.cases else math.nan


def main() -> int:
    """Score the rules; return 1 where precision or recall of one is under 0.95."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m tests.findings")
    parser.add_argument("--fleets", type=int, default=20)
    parser.add_argument("--seed", type=int, default=500)
    parser.add_argument("--of", nargs="+", choices=(*KINDS, "sites"), default=KINDS)
    parser.add_argument("--gpus", type=int, default=128)
    parser.add_argument("--hours", type=int, default=24)
    parser.add_argument("--out", type=Path, help="CSV of the rates, by rule and confidence")
    parser.add_argument("--quiet", action="store_true", help="512 GPUs, nothing happens")
    given = parser.parse_args()
    if given.quiet:
        return quiet(given.seed, given.hours)
    scores: dict[str, Score] = defaultdict(Score)
    back, truly = 0.0, 0.0
    kept = rates(given.out) if given.out is not None else []
    for seed in range(given.seed, given.seed + given.fleets):
        if "losses" in given.of:
            with fleet(given.gpus, given.hours, seed, plans.eventful) as (folder, _, store):
                score(expected(folder, limits(store)), subjects(store), scores, seed)
                regained, lost = regains(folder, store)
                back, truly = back + regained, truly + lost
        if "anomalies" in given.of:
            with fleet(given.gpus, given.hours, seed, plans.with_cases) as (folder, cases, store):
                score(labelled(folder, cases, limits(store)), subjects(store), scores, seed)
        if "rows" in given.of:
            with planted(seed) as (truth, store):
                score(truth, rows.found(store, truth), scores, seed)
        if "sites" in given.of:
            score_sites(scores, seed)
        if given.out is not None:
            with given.out.open("w", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows(table(scores, kept))
    say(
        f"{'rule':24s} {'cases':>6s} {'missed':>6s} {'wrong':>6s} precision (95 %)    recall (95 %)"
    )
    poor = 0
    for rule, of_rule in sorted(scores.items()):
        precision, recall = of_rule.ratios()
        poor += min(precision, recall) < 0.95
        right, wrong = of_rule.right.total(), of_rule.wrong.total()
        say(
            f"{rule:24s} {of_rule.cases:6d} {of_rule.missed:6d} {wrong:6d} "
            f"{precision:6.3f} {interval(right, right + wrong)} "
            f"{recall:6.3f} {interval(of_rule.cases - of_rule.missed, of_rule.cases)}"
        )
    say("not measured: " + ", ".join(sorted({rule.name for rule in rules()} - scores.keys())))
    say(f"recoverable: {back / 3.6e6:,.1f} GPU-h of {truly / 3.6e6:,.1f} that were lost")
    return 1 if poor else 0


def rates(path: Path) -> list[tuple[object, ...]]:
    """Return the rows of an earlier measurement."""
    with path.open(newline="") as file:
        return [tuple(row) for row in csv.reader(file)][1:]


def table(scores: dict[str, Score], kept: list[tuple[object, ...]]) -> Iterator[tuple[object, ...]]:
    """Yield header and rows of the CSV; a row without confidence has the cases of the rule.

    kept: rows of an earlier one, of which those of other rules stay
    """
    made = [row for row in kept if row[0] not in scores]
    for rule, of_rule in scores.items():
        if of_rule.cases:
            made.append((rule, "", of_rule.cases - of_rule.missed, of_rule.cases))
        for word in of_rule.right.keys() | of_rule.wrong.keys():
            right = of_rule.right[word]
            made.append((rule, word, right, right + of_rule.wrong[word]))
    yield "rule", "confidence", "right_count", "total_count"
    yield from sorted(made, key=lambda row: row[:2])


def interval(right: int, of: int) -> str:
    """Return the interval of a share by Wilson (1927), at 95 %."""
    if not of:
        return " " * 13
    z, share = 1.96, right / of
    middle = (share + z * z / (2 * of)) / (1 + z * z / of)
    half = z / (1 + z * z / of) * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    return f"{middle - half:.3f}-{min(1, middle + half):.3f}"


@contextlib.contextmanager
def fleet(
    gpus: int, hours: int, seed: int, plan: Callable[..., plans.Plan]
) -> Iterator[tuple[Path, list[Case], LocalStore]]:
    """Give the folder of a made-up fleet, its cases if they are planned, and its database."""
    with tempfile.TemporaryDirectory(prefix="goodput-findings-") as name:
        folder = Path(name)
        generate(folder, gpus=gpus, hours=hours, seed=seed, start=START, plan=plan)
        cases = faults.add(folder) if plan is plans.with_cases else []
        with contextlib.closing(built(folder)) as store:
            yield folder, cases, store


@contextlib.contextmanager
def planted(seed: int) -> Iterator[tuple[dict[str, Expected], LocalStore]]:
    """Give what must be found of the rows that are planted in a made-up fleet, and its database."""
    with tempfile.TemporaryDirectory(prefix="goodput-findings-") as name:
        folder = Path(name)
        generate(folder, gpus=ROWS_GPUS, hours=ROWS_HOURS, seed=seed, start=START)
        with contextlib.closing(LocalStore(folder / "fleet.duckdb")) as store:
            read_in(store, folder)
            yield rows.add(store, folder, ROWS_HOURS, seed), store


def score_sites(scores: dict[str, Score], seed: int) -> None:
    """Score losses of sites in one database; what a site's evidence does not show may be found."""
    with (
        tempfile.TemporaryDirectory(prefix="goodput-findings-") as name,
        contextlib.closing(LocalStore(Path(name) / "sites.duckdb")) as store,
    ):
        for place, site in enumerate(SITES):
            generate(
                folder := Path(name) / site, gpus=ROWS_GPUS, hours=ROWS_HOURS, start=START,
                seed=seed + 1000 * place, cluster=site, scheduler=site,
                plan=on_kubernetes if site == "kubernetes" else plans.eventful,
            )  # fmt: skip
            read_in(store, folder)
        store.build()
        for site, unknown in SITES.items():
            truth, found = expected(Path(name) / site, limits(store)), subjects(store, site)
            sql = "select distinct run_id from intermediate.int_attempts where cluster = $1"
            runs = {run for (run,) in store.read(sql, [site]).rows()}
            if site == "none":  # no evidence distinguishes a preemption from a failure
                truth["job_failure"].may.update(*(truth[of].must for of in FAILURES.values()))
            for rule, of_rule in truth.items():
                is_shown = set() if rule in unknown else runs if rule in BY_RUN else of_rule.must
                of_rule.may |= of_rule.must
                of_rule.must &= is_shown
            score(truth, found, scores, seed, f" ({site})")


def quiet(seed: int, hours: int) -> int:
    """Print the pages and tickets of a fleet in which nothing happens; return 1 if any is."""
    with fleet(512, hours, seed, plans.quiet) as (_, _, store):
        sql = "select severity, rule, subject, evidence from marts.findings order by rule, subject"
        found = store.read(sql).rows()
    for severity, rule, subject, evidence in found:
        if severity != "note":
            say(f"{severity} {rule}: {subject}: {evidence}")
    loud = sum(severity != "note" for severity, *_ in found)
    say(f"{len(found)} findings, {loud} pages and tickets")
    return 1 if loud else 0


def built(folder: Path) -> LocalStore:
    """Return the ledger of a fleet's files."""
    store = LocalStore(folder / "fleet.duckdb")
    read_in(store, folder)
    store.build()
    return store


def limits(store: LocalStore) -> dict[str, float]:
    """Return the thresholds by name."""
    return dict(store.read("select name, value from reference.thresholds").rows())


def score(
    truth: dict[str, Expected], found: dict[str, Found], scores: dict[str, Score], seed: int,
    of: str = "",
) -> None:  # fmt: skip
    """Compare the findings of a fleet, or of a site that is named, with what is expected."""
    for rule, of_rule in truth.items():
        wrong, missed = scores[rule + of].add(found[rule], of_rule)
        if wrong or missed:
            say(f"seed {seed} {rule}{of}: wrong {sorted(wrong)[:5]}, missed {sorted(missed)[:5]}")


def subjects(store: LocalStore, cluster: str | None = None) -> dict[str, Found]:
    """Return what each rule is about in a fleet: runs, nodes, GPUs, teams or the cluster."""
    found: dict[str, Found] = defaultdict(list)
    sql = """select findings.*, runs.run_id from marts.findings as findings
        left join (select distinct run_key, run_id from intermediate.int_attempts) as runs
            using (run_key)"""
    listed = store.read(sql, scope=Scope(cluster=cluster)).rows(named=True)
    # runs that lost time by the failure of a node
    sql = """select distinct attempts.run_id, parts.node from marts.loss_parts as parts
        inner join intermediate.int_attempts as attempts on parts.case_key = attempts.attempt_key
        where parts.rule = 'infrastructure_failure' and parts.gpu_ms > 0"""
    hit = store.read(sql, scope=Scope(cluster=cluster)).rows()
    for row in listed:
        rule, word = row["rule"], row["confidence"]
        if rule == "infrastructure_failure" and row["run_id"] is None:
            found[rule] += [(run, word) for run, node in hit if node == row["node"]]
        elif rule in BY_RUN:
            found[rule].append((row["run_id"], word))
        elif rule == "unclassified_time":
            found[rule].append((row["team"], word))
        elif rule == "slow_benchmark":
            found[rule].append((row["subject"].split(",")[0], word))
        else:
            found[rule].append((row["gpu_uuid"] or row["node"] or "atlas", word))
        if rule == "gaps_between_steps" and "s (jitter" in row["evidence"]:
            found["periodic_gaps"].append((row["run_id"], word))
    return found


def regains(folder: Path, store: LocalStore) -> tuple[float, float]:
    """Return what the fix list gives back of losses of runs, and what the truth lost of them."""
    categories = [c for rule, of in CATEGORIES.items() if rule != "checkpoint_overhead" for c in of]
    categories += ["straggler_wait", "throttled"]
    lost = lost_ms(folder, limits(store))
    of_runs = lost.filter(lost["run_id"].is_not_null() & lost["expected"].is_in(categories))
    sql = ("select sum(back_ms) from marts.findings where kind in "
           "('failures', 'input', 'gaps', 'queue', 'stragglers', 'throttling')")  # fmt: skip
    back = store.read(sql).item()
    return float(back or 0), float(of_runs["gpu_ms"].sum())


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
