"""Hours of the ledger that are counted once and for good: the counters of `/metrics`.

A counter may not fall: Prometheus takes a fall for a restart from zero and counts the whole value
again. The ledger does move time between categories when evidence comes late. Therefore an hour is
counted once, a set time after it ended, as the ledger has it then. Later corrections are
`revisions`; they are not in the counters.
"""

import polars as pl

from goodput_queries.database import LocalStore, Store

HOUR_MS = 3_600_000
RANKED_MS = 30 * 24 * HOUR_MS  # the values with most GPU time in it are labels of their own
VALUE_MAX_CHARS = 200
OTHER = "other"
LABELS = ("team", "partition", "gpu_model")

_DUE = f"""
    with hours as (
        select clusters.cluster, counted.until_ms as counted_ms,
            clusters.first_ms // {HOUR_MS} * {HOUR_MS} as first_ms,
            (clusters.as_of_ms - $1) // {HOUR_MS} * {HOUR_MS} as until_ms
        from intermediate.int_clusters as clusters
        semi join intermediate.int_gpu_units as units using (cluster)
        left join state.counted_until as counted using (cluster)
    )
    select cluster, coalesce(counted_ms, first_ms) as first_ms, until_ms from hours
    where until_ms > coalesce(counted_ms, first_ms)
"""

# the ledger of a cluster with its labels, and the values of each that have most GPU time
_LABELLED = f"""
    labelled as (
        select
            hourly.category, hourly.hour_ms, hourly.gpu_ms,
            left(coalesce(owners.team, ''), {VALUE_MAX_CHARS}) as team,
            left(coalesce(owners.partition, ''), {VALUE_MAX_CHARS}) as partition,
            left(coalesce(hourly.gpu_model, ''), {VALUE_MAX_CHARS}) as gpu_model
        from marts.ledger_hourly_by_node as hourly
        left join intermediate.int_job_run_owners as owners using (job_run_key)
        where hourly.cluster = $cluster and hourly.hour_ms < $until_ms
            and hourly.hour_ms >= least($first_ms, $until_ms - {RANKED_MS})
    ),
    sums as (
        unpivot (
            select team, partition, gpu_model, gpu_ms
            from labelled where hour_ms >= $until_ms - {RANKED_MS}
        ) on team, partition, gpu_model into name label value value
    ),
    ranked as (
        select label, value,
            row_number() over (partition by label order by sum(gpu_ms) desc, value) as place
        from sums where value <> '' group by label, value
    )
"""


def count_settled_hours(store: LocalStore, *, settle_ms: int, label_values: int) -> int:
    """Count the hours that ended `settle_ms` before the end of evidence; return how many.

    label_values: how many teams, partitions and GPU models of a cluster are counted under their
    own name, those with most GPU time in 30 days; the others are counted as OTHER. A name that is
    no longer among them keeps what was counted for it.
    """
    if store.is_read_only:
        return 0
    due = store.read(_DUE, [settle_ms]).rows()
    if not due:
        return 0
    values = f"in (select value from ranked where label = '{{}}' and place <= {int(label_values)})"
    shown = ", ".join(
        f"case when {label} = '' or {label} {values.format(label)} then {label} else '{OTHER}' end"
        f" as {label}"
        for label in LABELS
    )
    with store.writing() as cursor:
        for cluster, first_ms, until_ms in due:
            cursor.execute(
                f"""with {_LABELLED}
                merge into state.counted_gpu_time as counted
                using (
                    select $cluster as cluster, category, {shown}, sum(gpu_ms)::bigint as gpu_ms,
                        $until_ms::bigint as until_ms
                    from labelled where hour_ms >= $first_ms group by all
                ) as added
                using (cluster, category, team, partition, gpu_model)
                when matched then update set
                    gpu_ms = counted.gpu_ms + added.gpu_ms, until_ms = added.until_ms
                when not matched then insert by name""",
                {"cluster": cluster, "first_ms": first_ms, "until_ms": until_ms},
            )
            known = cursor.execute(
                "update state.counted_until set until_ms = $1 where cluster = $2 returning 1",
                [until_ms, cluster],
            ).fetchall()
            if not known:
                cursor.execute(
                    "insert into state.counted_until values ($1, $2, $3)",
                    [cluster, first_ms, until_ms],
                )
    return sum((until_ms - first_ms) // HOUR_MS for _, first_ms, until_ms in due)


def counted(store: Store, label_values: int) -> pl.DataFrame:
    """Return cluster, category, team, partition, gpu_model and gpu_ms of the counted hours.

    At most `label_values` teams, partitions and GPU models of a cluster beside OTHER: those that
    were counted last, then those with most GPU time. A name that is left out for a while comes
    back with all of its time.
    """
    window = "over (partition by cluster, {label})"
    sums = ", ".join(
        f"max(until_ms) {window.format(label=label)} as {label}_until_ms, "
        f"sum(gpu_ms) {window.format(label=label)} as {label}_ms"
        for label in LABELS
    )
    within = " and ".join(
        f"({label} in ('', '{OTHER}') or dense_rank() over (partition by cluster, "
        f"{label} in ('', '{OTHER}') order by {label}_until_ms desc, {label}_ms desc, {label}"
        f") <= {int(label_values)})"
        for label in LABELS
    )
    return store.read(
        f"""with sums as (select *, {sums} from state.counted_gpu_time)
        select cluster, category, team, partition, gpu_model, gpu_ms from sums
        qualify {within}
        order by all"""
    )


def revisions(store: Store) -> pl.DataFrame:
    """Return cluster, category and gpu_ms: counted hours in the ledger now, less what was counted.

    The rows of a cluster add up to capacity that was found or lost since.
    """
    return store.read(
        """with ledger as (
            select hourly.cluster, hourly.category, sum(hourly.gpu_ms) as ledger_ms
            from marts.ledger_hourly_by_node as hourly
            inner join state.counted_until as counted
                on hourly.cluster = counted.cluster
                and hourly.hour_ms >= counted.from_ms and hourly.hour_ms < counted.until_ms
            group by all
        ),
        sums as (
            select cluster, category, sum(gpu_ms) as counted_ms
            from state.counted_gpu_time group by all
        )
        select cluster, category,
            (coalesce(ledger_ms, 0) - coalesce(counted_ms, 0))::bigint as gpu_ms
        from ledger full join sums using (cluster, category) order by all"""
    )


def folded(store: Store, label_values: int) -> pl.DataFrame:
    """Return cluster, label and folded: how many names of 30 days are counted as OTHER now."""
    return store.read(
        f"""with recent as (
            select hourly.cluster, owners.team, owners.partition, hourly.gpu_model
            from marts.ledger_hourly_by_node as hourly
            inner join state.counted_until as counted
                on hourly.cluster = counted.cluster and hourly.hour_ms < counted.until_ms
                and hourly.hour_ms >= counted.until_ms - {RANKED_MS}
            left join intermediate.int_job_run_owners as owners using (job_run_key)
        )
        select cluster, label, greatest(n - {int(label_values)}, 0) as folded
        from (
            unpivot (
                select cluster, count(distinct team) as team,
                    count(distinct partition) as partition, count(distinct gpu_model) as gpu_model
                from recent group by cluster
            ) on team, partition, gpu_model into name label value n
        ) order by all"""
    )
