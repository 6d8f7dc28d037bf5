"""The rules of findings as a page: `python -m goodput_app.finding_rules > docs/findings.md`."""

from __future__ import annotations

import csv
import sys
from importlib.resources import files

RULES = files("goodput_queries") / "sql" / "reference" / "finding_rules.csv"
_HEAD = """# Findings

A finding is a loss, a fault or an anomaly that is worth a person's look. `goodput findings` lists
them, `goodput fixes` what to do first, the Findings page shows both. This page is printed from
`reference/finding_rules.csv` (`python -m goodput_app.finding_rules > docs/findings.md`); limits are
in `reference/thresholds.csv`, each with its unit and reason. Why it is so:
[decision 0100](decisions/0100-findings.md).

- **Losses are counted once.** Each GPU-millisecond of a loss is in at most one finding
  (`marts.loss_claims`), so that the rows of the fix list add up to what the ledger would gain
  ([decision 0151](decisions/0151-fix-list-against-a-recomputed-ledger.md)).
- **Recoverable GPU time** is the loss itself: waits over the median step of the gang, idle time,
  work that was lost. Of blocking saves it is what the best interval saves, of start-up what is over
  the median of the cluster. *Confirmed part* is that whose cause is confirmed or that
  was idle by readings.
- **A finding closes by itself** when it was not seen for half an hour; seen again, it is a new one.
- **What people say is stored apart** (`state.finding_actions`) and survives rebuilds: an
  acknowledgement is of one occurrence, a dismissal (with its reason) holds for the same rule and
  subject until it is reopened. `goodput finding acknowledge KEY --note "..."`.
- **Open findings are sent** to the targets under `[[notify]]`: see
  [Notifications](operate.md#notifications).
- A loss under one GPU-hour is information, whatever its rule.
- **One fact is one finding**: GPUs that were never active are in the finding of idle GPUs, a silent
  node in that of the node that is down, where at least half of it is the same time.
- **The verdict of the Runs and Run pages** is the largest finding about the run, by the GPU
  time that it lost (`marts.run_verdicts`).
"""


def page() -> str:
    """Return the page in Markdown."""
    rows = list(csv.DictReader(RULES.read_text("utf-8").splitlines()))
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    lines = [_HEAD]
    for kind in kinds:
        lines.append(f"## {kind.capitalize()}\n")
        for row in rows:
            if row["kind"] == kind:
                lines += [
                    f"### {row['title']}\n",
                    f"`{row['rule']}`, {row['severity']}. {row['meaning']}\n",
                    f"- How it is found: {row['found_by']}.",
                    f"- What to do: {row['action']}.",
                    f"- Who: {row['owner']}; effort: {row['effort']}.\n",
                ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(page())
