"""Data of a node's time axis: where its GPU time went in each bin, and what its peers read."""

from collections.abc import Sequence

import polars as pl

from goodput_app.dashboard import theme
from goodput_app.dashboard.data import marts, metrics, spread
from goodput_queries.scope import Scope

PEERS_MAX = 64


def ledger_bins(scope: Scope) -> tuple[pl.DataFrame, int]:
    """Return `bucket_at`, `category` and `gpu_ms` of the scope's GPUs, and a bin's length in ms."""
    bin_ms = metrics.bin_of_shares(scope)
    found = marts.read(
        """select from_ms(start_ms) as bucket_at, category, sum(gpu_ms)::bigint as gpu_ms
        from marts.category_bins group by all order by bucket_at, category""",
        marts.of_any_owner(scope, bin_ms),
    )
    return found, bin_ms


def categories(scope: Scope) -> tuple[pl.DataFrame, int]:
    """Return the ledger of the scope's GPU in bins, in the order of stacks; a bin's length in ms.

    Columns: bucket_at, gpu_instance, category, label, colour, gpu_ms
    """
    bin_ms = metrics.bin_of_shares(scope)
    found = marts.read(
        """select from_ms(start_ms) as bucket_at, gpu_instance, category, label, colour,
            gpu_ms::bigint as gpu_ms
        from marts.category_bins
        inner join reference.gpu_second_categories using (category)
        where gpu_ms > 0""",
        marts.of_any_owner(scope, bin_ms),
    )
    rank = pl.col("category").map_elements(theme.rank, return_dtype=pl.Int64)
    return found.sort("bucket_at", rank, "gpu_instance"), bin_ms


def peers(scope: Scope, read: metrics.Resolution, names: Sequence[str]) -> pl.DataFrame:
    """Return metrics of GPUs like those of the scope's node, elsewhere in its cluster.

    At most PEERS_MAX, always the same of a cluster: `spread.over_gpus`, empty of a lake.
    """
    if read.is_of_lake:
        return pl.DataFrame()
    return spread.over_gpus(
        marts.of_any_place(scope),
        read,
        names,
        f"""select gpu_uuid, 0 as held_from_ms, forever_ms() as held_to_ms
        from (
            select cluster, gpu_model from marts.gpus where node = $1 limit 1
        ) inner join marts.gpus using (cluster, gpu_model)
        where node != $1
        group by gpu_uuid order by hash(gpu_uuid), gpu_uuid limit {PEERS_MAX}""",
        scope.node,
    )


def useful_hours(scope: Scope) -> pl.DataFrame:
    """Return `cluster`, `node`, `hour_ms` and `useful_ratio`: of the GPU time of each node."""
    return marts.read(
        """select
            cluster, node, hour_ms,
            coalesce(sum(gpu_ms) filter (where kind = 'goodput'), 0) / sum(gpu_ms) as useful_ratio
        from marts.ledger_scoped_by_node
        inner join reference.gpu_second_categories using (category)
        group by all having sum(gpu_ms) > 0""",
        scope,
    )
