"""What an empty answer may come from: a filter that names nothing the ledger knows."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from goodput_app import output

if TYPE_CHECKING:
    from goodput_queries.scope import Scope
    from goodput_queries.store import Store

FILTERS = ("cluster", "node", "run", "team")
NEAR_MAX = 3


def unknown_filters(store: Store, scope: Scope) -> list[str]:
    """Return a sentence for each filter whose value has no GPU time at all, and what is near."""
    given = {name: value for name in FILTERS if (value := getattr(scope, name)) is not None}
    if not given:
        return []
    values = store.read(
        "select distinct kind, value, label from marts.scope_values "
        "union all select 'cluster', cluster, cluster from marts.clusters"
    )
    found: list[str] = []
    for kind, value in given.items():
        known = dict(values.filter(values["kind"] == kind).select("value", "label").iter_rows())
        if value in known:
            continue
        called_so = [one for one, label in known.items() if label == value]
        near = called_so or get_close_matches(value, known, NEAR_MAX)
        shown = ", ".join(output.cell(kind, one) for one in near[:NEAR_MAX])
        hint = f"; did you mean {shown}?" if near else "."
        found.append(f"The ledger knows no {kind} {output.cell(kind, value)}{hint}")
    return found
