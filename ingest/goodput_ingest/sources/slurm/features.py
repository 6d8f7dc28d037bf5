"""What a job asks of the features of nodes, as Slurm reads it: `a&b`, `(a|b)&c`, `[a*2&b*4]`."""

import re
from itertools import product

SETS_MAX = 64
DEPTH_MAX = 8
_TOKEN = re.compile(r"[()\[\]&|]|[^()\[\]&|*\s]{1,200}(?:\*\d{1,6})?")
_PAIR = {"(": ")", "[": "]"}

Sets = list[frozenset[str]]


def feature_sets(text: str, nodes: int | None) -> list[str] | None:
    """Return the sets of features of which a node needs one, each as `a&b`; None: any node will do.

    nodes: the number of nodes asked for. Operators are read from left to right. Terms with a count
    are of different nodes, so that each is enough; where counts leave nodes over, these may be any.
    What cannot be read asks for nothing.
    """
    tokens = _TOKEN.findall(text)
    if "".join(tokens) != text.replace(" ", ""):
        return None
    try:
        sets, _, rest = _read(tokens, 0)
    except ValueError:
        return None
    counted = sum(int(token.rpartition("*")[2]) for token in tokens if "*" in token)
    is_any = any(not one for one in sets) or 0 < counted < (nodes or 0)
    return None if rest or is_any else sorted({"&".join(sorted(one)) for one in sets})


def _read(tokens: list[str], depth: int) -> tuple[Sets, bool, list[str]]:
    """Return the sets of an expression, whether it has counts, and the tokens after it."""
    sets, has_counts, tokens = _term(tokens, depth)
    while tokens and tokens[0] in "&|":
        operator = tokens[0]
        more, has_more_counts, tokens = _term(tokens[1:], depth)
        if operator == "|" or has_counts or has_more_counts:
            sets = [*sets, *more]
        else:
            sets = [one | other for one, other in product(sets, more)]
        has_counts = has_counts or has_more_counts
        if len(sets) > SETS_MAX:
            raise ValueError
    return sets, has_counts, tokens


def _term(tokens: list[str], depth: int) -> tuple[Sets, bool, list[str]]:
    if not tokens or depth > DEPTH_MAX or tokens[0] in ")]&|":
        raise ValueError
    if (close := _PAIR.get(tokens[0])) is None:
        name, star, _ = tokens[0].partition("*")
        return [frozenset([name])], bool(star), tokens[1:]
    sets, has_counts, rest = _read(tokens[1:], depth + 1)
    if not rest or rest[0] != close:
        raise ValueError
    return sets, has_counts, rest[1:]
