"""`make findings`: precision and recall of each rule over made-up fleets with their truth.

    python -m tests.findings --fleets 20 --seed 500
    python -m tests.findings --quiet

The first scores losses on eventful fleets and anomalies on fleets with labelled cases
(`faults.py`), the second lists the pages and tickets of a fleet of 512 GPUs in which nothing
happens. Fleets are read in from the files that sites have; the truth is what was put into them.
Losses near the limit of a rule count neither way. No threshold was chosen on these seeds.
"""

import argparse
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tests.findings import faults
from tests.findings.truth import (
    CATEGORIES,
    FAILURES,
    OF_RUNS,
    STORIES,
    Expected,
    expected,
    labelled,
    lost_ms,
)  # fmt: skip

from goodput_app.demo import recipe
from goodput_ingest.run.ingest import ingest
from goodput_ingest.synthetic import generate, plans
from goodput_queries.database import LocalStore

START = datetime(2026, 11, 17, 12, tzinfo=UTC)


@dataclass
class Score:
    """What was found of a rule: rightly, wrongly, and what was missed."""

    right: int = 0
    wrong: int = 0
    missed: int = 0

    def add(self, found: set[str], truth: Expected) -> tuple[set[str], set[str]]:
        """Count a fleet; return what was found wrongly and what was missed."""
        wrong, missed = found - truth.must - truth.may, truth.must - found
        self.right += len(found & truth.must)
        self.wrong += len(wrong)
        self.missed += len(missed)
        return wrong, missed


def main() -> int:
    """Score the rules; return 1 where precision or recall of one is under 0.95."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m tests.findings")
    parser.add_argument("--fleets", type=int, default=20)
    parser.add_argument("--seed", type=int, default=500)
    parser.add_argument("--gpus", type=int, default=128)
    parser.add_argument("--hours", type=int, default=24)
    parser.add_argument("--cases", action="store_true", help="score anomalies alone")
    parser.add_argument("--quiet", action="store_true", help="512 GPUs, nothing happens")
    given = parser.parse_args()
    if given.quiet:
        return quiet(given.seed, given.hours)
    scores: dict[str, Score] = defaultdict(Score)
    back, truly = 0.0, 0.0
    for seed in range(given.seed, given.seed + given.fleets):
        if not given.cases:
            regained, lost = score_losses(given.gpus, given.hours, seed, scores)
            back, truly = back + regained, truly + lost
        score_cases(given.gpus, given.hours, seed, scores)
    say(f"{'rule':24s} {'right':>6s} {'wrong':>6s} {'missed':>6s} precision recall")
    poor = 0
    for rule, of_rule in sorted(scores.items()):
        precision = of_rule.right / max(1, of_rule.right + of_rule.wrong)
        recall = of_rule.right / max(1, of_rule.right + of_rule.missed)
        poor += of_rule.right + of_rule.missed > 0 and min(precision, recall) < 0.95
        say(
            f"{rule:24s} {of_rule.right:6d} {of_rule.wrong:6d} {of_rule.missed:6d} "
            f"{precision:9.3f} {recall:6.3f}"
        )
    if not given.cases:
        say(f"recoverable: {back / 3.6e6:,.1f} GPU-h of {truly / 3.6e6:,.1f} that were lost")
    return 1 if poor else 0


def score_losses(gpus: int, hours: int, seed: int, scores: dict[str, Score]) -> tuple[float, float]:
    """Score the rules about losses, of an eventful fleet; return recoverable and lost time."""
    with tempfile.TemporaryDirectory(prefix="goodput-findings-") as name:
        folder = Path(name)
        generate(folder, gpus=gpus, hours=hours, seed=seed, start=START)
        store = built(folder)
        score(expected(folder, limits(store)), store, scores, seed)
        found = regains(folder, store)
        store.close()
    return found


def score_cases(gpus: int, hours: int, seed: int, scores: dict[str, Score]) -> None:
    """Score the rules about anomalies, of a fleet with labelled cases."""
    with tempfile.TemporaryDirectory(prefix="goodput-findings-") as name:
        folder = Path(name)
        generate(folder, gpus=gpus, hours=hours, seed=seed, start=START, plan=plans.with_cases)
        cases = faults.add(folder)
        store = built(folder)
        score(labelled(folder, cases, limits(store)), store, scores, seed)
        store.close()


def quiet(seed: int, hours: int) -> int:
    """Print the pages and tickets of a fleet in which nothing happens; return 1 if any is."""
    with tempfile.TemporaryDirectory(prefix="goodput-findings-") as name:
        folder = Path(name)
        generate(folder, gpus=512, hours=hours, seed=seed, start=START, plan=plans.quiet)
        store = built(folder)
        rows = store.read(
            "select severity, rule, subject, evidence from marts.findings order by rule, subject"
        ).rows()
        store.close()
    for severity, rule, subject, evidence in rows:
        if severity != "note":
            say(f"{severity} {rule}: {subject}: {evidence}")
    loud = sum(severity != "note" for severity, *_ in rows)
    say(f"{len(rows)} findings, {loud} pages and tickets")
    return 1 if loud else 0


def built(folder: Path) -> LocalStore:
    """Return the ledger of a fleet's files."""
    store = LocalStore(folder / "fleet.duckdb")
    for step in recipe(folder):
        ingest(store, step.source, [step.path], step.options)
    store.build()
    return store


def limits(store: LocalStore) -> dict[str, float]:
    """Return the thresholds by name."""
    return dict(store.read("select name, value from reference.thresholds").rows())


def score(
    truth: dict[str, Expected], store: LocalStore, scores: dict[str, Score], seed: int
) -> None:
    """Compare the findings of a fleet with what is expected."""
    found = subjects(store)
    for rule, of_rule in truth.items():
        wrong, missed = scores[rule].add(found[rule], of_rule)
        if wrong or missed:
            say(f"seed {seed} {rule}: wrong {sorted(wrong)[:5]}, missed {sorted(missed)[:5]}")


def subjects(store: LocalStore) -> dict[str, set[str]]:
    """Return what each rule is about in a fleet: runs, nodes, GPUs or clusters."""
    found: dict[str, set[str]] = defaultdict(set)
    rows = store.read(
        """select findings.*, runs.run_id from marts.findings as findings
        left join (select distinct run_key, run_id from intermediate.int_attempts) as runs
            using (run_key)"""
    ).rows(named=True)
    # runs that lost time by the failure of a node
    hit = store.read(
        """select distinct attempts.run_id, parts.node from marts.loss_parts as parts
        inner join intermediate.int_attempts as attempts on parts.case_key = attempts.attempt_key
        where parts.rule = 'infrastructure_failure' and parts.gpu_ms > 0"""
    ).rows()
    for row in rows:
        rule = row["rule"]
        if rule == "gaps_between_steps":  # the truth has one name for both kinds of idle time
            found["idle_allocation"].add(row["run_id"])
            if "s (jitter" in row["evidence"]:
                found["periodic_gaps"].add(row["run_id"])
        elif rule in FAILURES and row["run_id"]:
            found["failures"].add(row["run_id"])
        elif rule == "infrastructure_failure":
            found["failures"] |= {run for run, node in hit if node == row["node"]}
        elif rule in CATEGORIES or rule in STORIES or rule in OF_RUNS:
            found[rule].add(row["run_id"])
        elif row["gpu_uuid"]:
            found[rule].add(row["gpu_uuid"])
        else:
            found[rule].add(row["node"] or row["cluster"])
    return found


def regains(folder: Path, store: LocalStore) -> tuple[float, float]:
    """Return what the fix list gives back of losses of runs, and what the truth lost of them."""
    categories = [c for rule, of in CATEGORIES.items() if rule != "checkpoint_overhead" for c in of]
    categories += ["straggler_wait", "throttled"]
    lost = lost_ms(folder)
    of_runs = lost.filter(lost["run_id"].is_not_null() & lost["expected"].is_in(categories))
    back = store.read(
        "select sum(back_ms) from marts.findings where kind in "
        "('failures', 'input', 'gaps', 'queue', 'stragglers', 'throttling')"
    ).item()
    return float(back or 0), float(of_runs["gpu_ms"].sum())


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
