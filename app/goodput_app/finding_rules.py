"""The rules of findings as a page: `python -m goodput_app.finding_rules > docs/findings.md`."""

import sys

from goodput_app.text import confidence
from goodput_queries.catalog.rules import EFFECTS, SMALL_MS, Rule, rates, rules

_HEAD = """# Findings

A finding is a loss, a fault or an anomaly that is worth a person's look. `goodput findings` lists
them, `goodput fixes` what to do first, the Findings page shows both. This page is printed from the
folders of the rules in `queries/*/rules` (`python -m goodput_app.finding_rules >
docs/findings.md`); limits of several rules are in `reference/thresholds.csv`. Reasons:
[decision 0100](decisions/0100-findings.md), [decision 0161](decisions/0161-a-rule-is-a-folder.md).

- **Losses are counted once.** Each GPU-millisecond of a loss is in at most one finding
  (`marts.loss_claims`), so that the rows of the fix list add up to what the ledger would gain.
- **Recoverable GPU time** comes back if the cause is removed: waiting beyond the gang's median
  step, idle time, lost work; of saves what the best interval saves, of start-up the part above the
  cluster's median. The cause of the *confirmed part* is confirmed, or readings show it as idle.
- **A finding closes by itself** after half an hour without new evidence, and at once where newer
  evidence shows the end. If it comes back within half an hour, it is the same finding.
- **Actions of people** (`state.finding_actions`) survive rebuilds. An acknowledgement applies to
  one occurrence; a dismissal, with its reason, to all later findings of the rule and subject until
  somebody reopens it. `goodput finding acknowledge KEY --note "..."`.
- **Open findings are sent** to the targets under `[[notify]]`: see
  [Notifications](notifications.md).
- **Confidence is measured** on made-up fleets whose faults are known
  ([decision 0175](decisions/0175-measured-confidence.md)): how many findings were right, and how
  many cases were found. A rule of which under 90 % are right (`confidence_right_ratio`) says *Not
  confirmed* whatever it found. Beside it stands how many findings of the rule people acknowledged
  and dismissed.
- **Severity follows from what a finding does**
  ([decision 0162](decisions/0162-severity-by-effect.md)). `page`: work is being lost now and does
  not stop by itself. `ticket`: a person must act in working hours. `note`: no action due. An open
  page does not fall with age; one that is over is a ticket where somebody still has to act.
- **A loss is small**, and a note unless an effect makes it more, under one GPU-hour
  (`finding_ticket_ms`) that is also under 1 % of what its cluster had until then
  (`finding_ticket_share`), or under 20 GPU-hours of idle GPUs (`idle_ticket_ms`).
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
        f"`{rule.name}`. {of['meaning']} Severity: {_severity(rule)}.\n",
        f"- Found by: {of['found_by']}.",
        f"- In tests: {confidence.hit_rates(rates().get(rule.name, {}), of['no_rate'])}.",
        f"- To do ({of['owner']}, {of['effort']}): {of['action']}.",
        *([f"- Once over: {of['action_after']}."] if of["action_after"] else []),
        *(
            [f"- Holds when: {of['holds_when']}. Never when: {of['forbidden_when']}."]
            if of["holds_when"]
            else []
        ),
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


def _severity(rule: Rule) -> str:
    """Return the severities of a rule, each with the effect that it follows from."""
    found = [rule.texts["severity"]]
    found += [f"{severity} {EFFECTS[effect]}" for effect, severity in rule.severity_when.items()]
    if rule.note_below is None:
        found.append("however small the loss is")
    elif rule.note_below != SMALL_MS:
        found.append(f"note under `{rule.note_below}`")
    return "; ".join(found)


if __name__ == "__main__":
    sys.stdout.write(page())
