"""What tests and people say of findings of a rule: how far its confidence can be trusted."""

from collections.abc import Mapping
from typing import Any

from goodput_queries.catalog import rules

NOT_MEASURED = "not measured in tests"


def with_hit_rate(row: Mapping[str, Any]) -> str:
    """Return the confidence of a finding, and how often such ones were right.

    row: of `marts.findings`.
    """
    accepted, dismissed = row["accepted"] or 0, row["dismissed"] or 0
    text = next((r.texts["no_rate"] for r in rules.rules() if r.name == row["rule"]), "")
    text = text or NOT_MEASURED
    if row["total_count"]:
        counts = f"{row['right_count']:,} of {row['total_count']:,}"
        text = f"{counts} such findings were right in tests"
    if accepted or dismissed:
        text += f"; people acknowledged {accepted:,} of this rule and dismissed {dismissed:,}"
    return f"{row['confidence']}; {text}"


def hit_rates(counts: Mapping[str, tuple[int, int]], no_rate: str = "") -> str:
    """Return what tests found of a rule, for its text. counts: of `rules.rates()`."""
    if not counts:
        return no_rate or NOT_MEASURED
    right = [f"{word} right in {n:,} of {of:,}" for word, (n, of) in counts.items() if word]
    found = [f"{n:,} of {of:,} cases found" for word, (n, of) in counts.items() if not word]
    return "; ".join([*right, *found])
