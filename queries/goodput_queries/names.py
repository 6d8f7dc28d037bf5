"""Resolves names in filters to the values of the ledger."""

from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from goodput_queries.database import Store
from goodput_queries.errors import QueryError
from goodput_queries.scope import Scope

NEAR_MAX = 3
CANDIDATES_MAX = 8
NAME_MAX_CHARS = 80
# value of the ledger, and the names that people may call it by; the first that fits any wins
_NAMES = {
    "cluster": """select cluster, cluster as value, [cluster] as names
        from intermediate.int_clusters""",
    "node": "select cluster, node as value, [node] as names from intermediate.int_gpu_units",
    "team": "select cluster, team as value, [team] as names from intermediate.int_job_run_owners",
    "run": """select cluster, run_key as value, [run_key, run_id, job_name] as names
        from intermediate.int_job_run_owners""",
}


def resolved(store: Store, scope: Scope) -> Scope:
    """Return the scope with the ledger's own values for the names in its filters.

    A run may be called by its key, its id or its job's name. Raises QueryError for a name that the
    ledger does not know, with those that are near, and for one of several runs, with all of them.
    """
    given = {name: value for name in _NAMES if (value := getattr(scope, name)) is not None}
    found: dict[str, Any] = {
        kind: _resolved(store, kind, name, scope.cluster) for kind, name in given.items()
    }
    return replace(scope, **found)


def _resolved(store: Store, kind: str, name: str, cluster: str | None) -> str:
    rows = store.read(
        f"select distinct value, names from ({_NAMES[kind]}) "
        "where value is not null and ($1 is null or cluster = $1) order by value",
        [None if kind == "cluster" else cluster],
    ).rows()
    for place in range(max((len(names) for _, names in rows), default=0)):
        called_so = list(dict.fromkeys(value for value, names in rows if names[place] == name))
        if len(called_so) == 1:
            return str(called_so[0])
        if called_so:
            shown = ", ".join(_shown(one) for one in called_so[:CANDIDATES_MAX])
            more = len(called_so) - CANDIDATES_MAX
            rest = f" and {more} more" if more > 0 else ""
            raise QueryError(
                f"{kind} {_shown(name)} is ambiguous: {shown}{rest}. Give one of these."
            )
    known = dict.fromkeys(str(one) for value, names in rows for one in (value, *names) if one)
    near = ", ".join(_shown(one) for one in get_close_matches(name, known, NEAR_MAX))
    where = f" in cluster {_shown(cluster)}" if cluster and kind != "cluster" else ""
    hint = f"; did you mean {near}?" if near else "."
    raise QueryError(f"The ledger knows no {kind} {_shown(name)}{where}{hint}")


def _shown(name: str) -> str:
    """Return a name for an error message: names in job logs may hold control characters."""
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in name)
    return text if len(text) <= NAME_MAX_CHARS else f"{text[: NAME_MAX_CHARS - 1]}…"
