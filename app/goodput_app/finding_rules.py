"""The rules of findings as a page: `python -m goodput_app.finding_rules > docs/findings.md`."""

from __future__ import annotations

import sys

from goodput_queries.catalog.rules import Rule, rules

_HEAD = """# Findings

A finding is a loss, a fault or an anomaly that is worth a person's look. `goodput findings` lists
them, `goodput fixes` what to do first, the Findings page shows both. This page is printed from the
folders of the rules in `queries/goodput_queries/rules` (`python -m goodput_app.finding_rules >
docs/findings.md`); limits of several rules are in `reference/thresholds.csv`. Why it is so:
[decision 0100](decisions/0100-findings.md), [decision 0161](decisions/0161-a-rule-is-a-folder.md).

- **Losses are counted once.** Each GPU-millisecond of a loss is in at most one finding
  (`marts.loss_claims`), so that the rows of the fix list add up to what the ledger would gain
  ([decision 0151](decisions/0151-fix-list-against-a-recomputed-ledger.md)).
- **Recoverable GPU time** is the time that comes back if the cause is removed: waiting beyond the
  gang's median step, idle time, lost work. For blocking saves it is what the best save interval
  saves; for start-up it is the part above the cluster's median. The *confirmed part* is the time
  whose cause is confirmed, or that readings show as idle.
- **A finding closes by itself** after half an hour without new evidence. If it comes back, it is a
  new finding.
- **Actions of people are stored separately** (`state.finding_actions`) and survive rebuilds. An
  acknowledgement applies to one occurrence; a dismissal (with its reason) applies to all later
  findings of the same rule and subject until somebody reopens it.
  `goodput finding acknowledge KEY --note "..."`.
- **Open findings are sent** to the targets under `[[notify]]`: see
  [Notifications](notifications.md).
- A finding that lost less than one GPU-hour is a `note`, whatever its rule.
- **One fact is one finding**: where two findings share at least half of their time, only one is
  shown: GPUs that were never active under idle GPUs, a silent node under the node that is down.
- **The verdict of the Runs and Run pages** is the largest finding about the run, by the GPU
  time that it lost (`marts.run_verdicts`).
"""


def page() -> str:
    """Return the page in Markdown."""
    lines = [_HEAD]
    for kind in sorted({rule.texts["kind"] for rule in rules()}):
        lines.append(f"## {kind.capitalize()}\n")
        for rule in rules():
            if rule.texts["kind"] == kind:
                lines += _section(rule)
    return "\n".join(lines)


def _section(rule: Rule) -> list[str]:
    of = rule.texts
    lines = [
        f"### {of['title']}\n",
        f"`{rule.name}`, {of['severity']}. {of['meaning']}\n",
        f"- How it is found: {of['found_by']}.",
        f"- What to do: {of['action']}.",
        *([f"- Once it is over: {of['action_after']}."] if of["action_after"] else []),
        *(
            [f"- It holds when: {of['holds_when']}. Never when: {of['forbidden_when']}."]
            if of["holds_when"]
            else []
        ),
        f"- Who: {of['owner']}; effort: {of['effort']}.",
    ]
    lines += [
        f"- Where it and `{merge.rule}` are about one {merge.by}, it is that finding."
        for merge in rule.merged_into
        if merge.rule != rule.name
    ]
    lines += [
        f"- `{limit.name}`: {limit.value:,.10g} {limit.unit}. {limit.why}."
        for limit in rule.thresholds
    ]
    return [*lines[:-1], f"{lines[-1]}\n"]


if __name__ == "__main__":
    sys.stdout.write(page())
