"""Node lists of accounting rows, expanded a part at a time: each distinct text once.

Most are one node or one range (`node[001-016]`), which columns take apart; the others are read one
by one (`hostlist`). Both come to the same names.
"""

import polars as pl

from goodput_ingest.formats import hostlist

HOSTS_PER_PART_MAX = 20_000_000
_NODE = r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}"
_ONE_NODE = rf"^{_NODE}$"
_ONE_RANGE = rf"^({_NODE})\[([0-9]{{1,9}})-([0-9]{{1,9}})\]$"
_NODES = pl.List(pl.String())
_EXPANDED = {"NodeList": pl.String(), "nodes": _NODES, "nodes problem": pl.String()}


def with_nodes(rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.Expr]:
    """Return the rows with `nodes`, the expanded `NodeList`, and an expression for what failed.

    The rows together may name HOSTS_PER_PART_MAX nodes: a short text can stand for a million.
    """
    texts = rows.group_by("NodeList").len("records").sort("NodeList")
    is_one = pl.col("NodeList").str.contains(_ONE_NODE).fill_null(value=False)
    one = texts.filter(is_one).select("NodeList", nodes=pl.concat_list("NodeList"))
    others = texts.filter(~is_one)
    ranges, named = _ranges(others)
    left = HOSTS_PER_PART_MAX - named
    if left < 0:  # too many together: the first ones in order are taken
        ranges, left = ranges.clear(), HOSTS_PER_PART_MAX
    rest = others.join(ranges, on="NodeList", how="anti", nulls_equal=True, maintain_order="left")
    expanded = pl.concat([one, ranges, _one_by_one(rest, left)], how="diagonal")
    joined = rows.select("NodeList").join(
        expanded, on="NodeList", how="left", maintain_order="left", nulls_equal=True
    )
    return rows.hstack(joined.drop("NodeList")), pl.col("nodes problem")


def _ranges(texts: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Return NodeList and nodes of the texts that are one range; how many nodes they name."""
    groups = pl.col("NodeList").str.extract_groups(_ONE_RANGE).struct
    found = (
        texts.select(
            "NodeList",
            "records",
            prefix=groups.field("1"),
            low=groups.field("2").cast(pl.Int64),
            high=groups.field("3").cast(pl.Int64),
            width=groups.field("2").str.len_bytes(),
        )
        .with_columns(size=pl.col("high") - pl.col("low") + 1)
        .filter(pl.col("size").is_between(1, hostlist.HOSTS_MAX))
    )
    named = int((found["size"] * found["records"]).sum())
    if named > HOSTS_PER_PART_MAX:
        return found.select("NodeList", nodes=pl.lit([], _NODES)), named
    number = pl.col("number").cast(pl.String).str.zfill(pl.col("width"))
    nodes = (
        found.with_columns(number=pl.int_ranges("low", pl.col("high") + 1))
        .explode("number")
        .select("NodeList", nodes=pl.concat_str("prefix", number))
        .group_by("NodeList", maintain_order=True)
        .agg("nodes")
    )
    return nodes, named


def _one_by_one(texts: pl.DataFrame, left: int) -> pl.DataFrame:
    """Return what texts stand for that together name at most `left` nodes, or what is wrong."""
    found: list[tuple[str | None, list[str] | None, str | None]] = []
    for text, records in texts.iter_rows():
        nodes, problem = None, None
        if text is not None:
            try:
                nodes = hostlist.expand(text, min(hostlist.HOSTS_MAX, left // records))
                left -= len(nodes) * records
            except hostlist.HostlistError as error:
                problem = f"slurm: {error}"
        found.append((text, nodes, problem))
    return pl.DataFrame(found, schema=_EXPANDED, orient="row")
