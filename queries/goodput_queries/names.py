"""Resolves names in filters to the values of the ledger."""

from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from goodput_queries.errors import QueryError
from goodput_queries.scope import Scope
from goodput_queries.storage.database_file import Reader

NEAR_MAX = 3
CANDIDATES_MAX = 8
NAME_MAX_CHARS = 80
# value of the ledger, and the names that people may call it by; the first that fits any wins
_NAMES = {
    "cluster": """select cluster, cluster as value, [cluster] as names
        from intermediate.int_clusters""",
    "node": "select cluster, node as value, [node] as names from intermediate.int_gpu_units",
    "team": "select cluster, team as value, [team] as names from intermediate.int_job_run_owners",
    "run": """select cluster, run_key as value, [run_key, run_id, job_id, job_name] as names
        from intermediate.int_job_run_owners""",
}
# the same of a reader of some teams: a node is the name of anybody's, and is not looked up
_OWN_NAMES = {
    "cluster": "select cluster, cluster as value, [cluster] as names from marts.clusters",
    "team": """select cluster, value, [value] as names
        from marts.search_targets where kind = 'team'""",
    "run": """select cluster, value, [value, label, unnest(string_split(detail, ' / '))] as names
        from marts.search_targets where kind = 'run'""",
}


def resolved(store: Reader, scope: Scope) -> Scope:
    """Return the scope with the ledger's own values for the names in its filters.

    A run may be called by its key, its id, or the number or name of a job. Raises QueryError for a
    name that the ledger does not know, with those that are near, and for one of several runs, with
    all of them.
    """
    known = _NAMES if scope.teams is None else _OWN_NAMES
    given = {name: value for name in known if (value := getattr(scope, name)) is not None}
    reader = Scope(teams=scope.teams)
    found: dict[str, Any] = {
        kind: _resolved(store, known[kind], kind, name, scope.cluster, reader)
        for kind, name in given.items()
    }
    return replace(scope, **found)


def _resolved(
    store: Reader, sql: str, kind: str, name: str, cluster: str | None, reader: Scope
) -> str:
    rows = store.read(
        f"select distinct value, names from ({sql}) "
        "where value is not null and ($1 is null or cluster = $1) order by value",
        [None if kind == "cluster" else cluster],
        scope=reader,
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
