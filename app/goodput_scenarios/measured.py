"""What a scenario can know from the site's own ledger: each value with the view it comes from."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

import polars as pl

from goodput_queries.database import Store
from goodput_queries.scope import Scope
from goodput_scenarios.scenario import Given
from goodput_scenarios.span import Span

MS_PER_HOUR = Decimal(3_600_000)
EVERY_MODEL = "every"
FEW_FAILURES = 3
CHOICES_MOST = 200
SPEED_UPS = "marts.gpu_model_speed_ups"
CAPS = "marts.work_by_power_cap"
MODELS, RUNS, LOSSES = "marts.gpu_models", "marts.checkpointing", "marts.ledger_by_category"
INPUT = "marts.run_input"


def choices(store: Store, scenario: str, scope: Scope) -> dict[str, str]:
    """Return what a scenario can be asked of, the most GPU time first: value to label.

    GPU models, runs that save or read, or losses; see CHOOSERS.
    """
    _, listed = CHOOSERS[scenario]
    return listed(store, _plain(scope))


def measured(store: Store, scenario: str, scope: Scope, of: str) -> dict[str, Given]:
    """Return the values of a scenario that the ledger knows in a window, of one of `choices`."""
    read, _ = CHOOSERS[scenario]
    return read(store, _plain(scope), of)


def are_absent(store: Store, scenario: str, scope: Scope, of: str) -> bool:
    """Say whether this is a loss that exists, of which a window has none."""
    if CHOOSERS[scenario][1] is not _losses:
        return False
    found = store.read(
        "select 1 from marts.ledger_by_category where kind = 'badput' and category = $1",
        [of],
        scope=_plain(scope),
    )
    return not found.is_empty()


def _plain(scope: Scope) -> Scope:
    """Return window and cluster: capacity has no owner, so that other filters do not apply."""
    return replace(
        scope, node=None, gpu_uuid=None, gpu_model=None, team=None, user=None, run=None,
        partition=None, bucket_ms=None,
    )  # fmt: skip


def _models(store: Store, scope: Scope) -> dict[str, str]:
    rows = store.read(
        "select gpu_model from marts.gpu_models where gpu_model is not null "
        "group by gpu_model order by sum(capacity_ms) desc, gpu_model",
        scope=scope,
        is_kept=True,
    )
    return {**{name: name for name in rows["gpu_model"]}, EVERY_MODEL: "every GPU model"}


def _runs(store: Store, scope: Scope) -> dict[str, str]:
    rows = store.read(
        "select run_key, run_id, cluster, saves from marts.checkpointing where saves > 1 "
        f"order by gpu_ms desc, run_key limit {CHOICES_MOST}",
        scope=scope,
    )
    return {key: f"{run} ({cluster}, {saves} saves)" for key, run, cluster, saves in rows.rows()}


def _losses(store: Store, scope: Scope) -> dict[str, str]:
    rows = store.read(
        "select category, label from marts.ledger_by_category where kind = 'badput' and gpu_ms > 0 "
        "order by category = 'idle_no_demand', gpu_ms desc, category",
        scope=scope,
        is_kept=True,
    )
    return dict(rows.rows())


def _of_models(store: Store, scope: Scope, model: str) -> dict[str, Given]:
    rows = store.read("select * from marts.gpu_models", scope=scope, is_kept=True)
    if model != EVERY_MODEL:
        rows = rows.filter(pl.col("gpu_model") == model)
    return _known(MODELS, _values_of_models(rows))


def _values_of_models(rows: pl.DataFrame) -> dict[str, tuple[Span | None, str]]:
    if rows.is_empty():
        return {}
    sums = {
        name: None if rows[name].null_count() == rows.height else _exact(rows[name].sum())
        for name, kind in rows.schema.items()
        if kind.is_numeric() and name not in ("power_w", "held_power_w", "power_limit_w")
    }
    held, capacity = sums["held_ms"], sums["capacity_ms"]
    productive, unsettled = sums["productive_ms"], sums["unsettled_ms"]
    gpus = sums["gpus"]
    limits = rows.filter(pl.col("power_limit_w").is_not_null())
    limit = (
        _over((limits["power_limit_w"] * limits["gpus"]).sum(), limits["gpus"].sum())
        if limits.height
        else None
    )
    old_power = _over(sums["energy_mj"], sums["measured_ms"])
    watts = f"energy / measured time, of {_share(sums['measured_ms'], capacity)} of the time"
    return {
        "old_gpus": (_span(gpus), "GPUs on average"),
        "gpus": (_span(gpus), "GPUs on average"),
        "old_power_w": (old_power, watts),
        "held_power_w": (
            _over(sums["held_energy_mj"], sums["held_measured_ms"]),
            f"energy over {_share(sums['held_measured_ms'], held)} of allocated time, measured",
        ),
        "power_limit_w": (limit, "as the inventory reports it"),
        "price_per_kwh": (
            _over(sums["metered_mj_price"], sums["tariffed_mj"]),
            f"mean over {_share(sums['tariffed_mj'], sums['energy_mj'])} of the energy",
        ),
        "use_ratio": (
            _between(productive, _plus(productive, unsettled), capacity),
            "useful / capacity; upper end with unclassified time",
        ),
        "held_ratio": (_over(held, capacity), "allocated / capacity"),
        "cost_per_productive_gpu_h": (
            _over(sums["ms_cost"], productive)
            if sums["priced_ms"] == capacity and productive
            else None,
            "what it costs now: all capacity at its price / useful hours",
        ),
    }


def _of_upgrade(store: Store, scope: Scope, model: str) -> dict[str, Given]:
    return {**_of_models(store, scope, model), **_speed_up(store, scope, model)}


def _of_power_cap(store: Store, scope: Scope, model: str) -> dict[str, Given]:
    return {**_of_models(store, scope, model), **_slowdown(store, scope, model)}


def _row(store: Store, sql: str, scope: Scope, of: str) -> dict[str, Any] | None:
    """Return the first row of a select with one parameter, None where it has none."""
    return next(store.read(sql, [of], scope=scope).iter_rows(named=True), None)


def _slowdown(store: Store, scope: Scope, model: str) -> dict[str, Given]:
    """Return the cap and the slowdown of the job that ran longest under two caps, where one did.

    The lowest cap against the highest one; a job that was not slower has a slowdown of 0.
    """
    row = _row(
        store,
        f"""select job_name, sum(hours) as hours,
            min(power_cap_w) as low_w, max(power_cap_w) as high_w,
            arg_min(work_per_gpu_s, power_cap_w) as low_speed,
            arg_max(work_per_gpu_s, power_cap_w) as high_speed
        from {CAPS}
        where $1 in (gpu_model, '{EVERY_MODEL}')
        group by cluster, job_name, gpu_model, gpus, work_unit
        having low_w < high_w
        order by hours desc, job_name limit 1""",
        scope,
        model,
    )
    if row is None:
        return {}
    slow = max(Decimal(0), 1 - _exact(row["low_speed"]) / _exact(row["high_speed"]))
    origin = f"{row['job_name']} at {row['low_w']:g} W beside {row['high_w']:g} W, {row['hours']} h"
    ratio = _over(_exact(row["low_w"]), _exact(row["high_w"]))
    return _known(CAPS, {"cap_ratio": (ratio, origin), "slowdown_ratio": (Span.of(slow), origin)})


def _speed_up(store: Store, scope: Scope, model: str) -> dict[str, Given]:
    """Return what a GPU of the fastest other model did of the same workloads, where any ran."""
    row = _row(
        store,
        "select * from marts.gpu_model_speed_ups where old_model = $1 and speed_up > 1 "
        "order by speed_up desc, new_model limit 1",
        scope,
        model,
    )
    if row is None:
        return {}
    span = Span(_exact(row["lowest_speed_up"]), _exact(row["highest_speed_up"]))
    origin = f"{row['new_model']}, {row['workloads']} workloads, {row['runs']} runs"
    return _known(SPEED_UPS, {"speed_up": (span, origin)})


def _of_run(store: Store, scope: Scope, run: str) -> dict[str, Given]:
    row = _row(store, "select * from marts.checkpointing where run_key = $1", scope, run)
    if row is None:
        return {}
    priced = store.read(
        "select sum(gpu_ms * price_per_gpu_h) as cost, sum(gpu_ms) as ms "
        "from marts.statement_lines where run_key = $1 and price_per_gpu_h is not null",
        [run],
        scope=replace(scope, run=run),
    ).row(0)
    return _known(
        RUNS,
        {
            "save_s": (_span(row["save_s"]), f"median of {row['saves']:,} saves"),
            "interval_s": (_span(row["interval_s"]), f"median between {row['saves']:,} saves"),
            "gpus": (_span(row["gpus"]), "GPUs of its largest attempt"),
            "mtbf_s": _mtbf(row),
            "price_per_gpu_h": (_over(*priced), "mean price of its allocated time"),
        },
    )


def _mtbf(row: Mapping[str, Any]) -> tuple[Span | None, str]:
    """Return the run's own time between failures; before its first one that of its cluster."""
    failures, hours = row["failures"], row["run_s"] / 3600
    if failures:
        few = "; few, so a rough figure" if failures < FEW_FAILURES else ""
        words = "failure" if failures == 1 else "failures"
        return _over(row["run_s"], failures), f"{failures} {words} in {_hours(hours)}{few}"
    gpu_h = row["cluster_gpu_ms"] / 3_600_000
    origin = (
        f"it has not failed in {_hours(hours)}; the platform ended {row['cluster_failures']} "
        f"attempts in {gpu_h:,.0f} GPU-h of its cluster, scaled to its GPUs"
    )
    return _over(row["cluster_gpu_ms"], 1000 * row["cluster_failures"] * row["gpus"]), origin


def _hours(hours: float) -> str:
    return f"{hours:,.1f} h" if hours >= 1 else f"{hours:.2g} h"


def _reading_runs(store: Store, scope: Scope) -> dict[str, str]:
    rows = store.read(
        "select run_key, run_id, cluster, inputs.gpus from marts.run_input as inputs "
        "inner join marts.runs using (run_key) "
        f"order by inputs.gpu_ms desc, run_key limit {CHOICES_MOST}",
        scope=scope,
    )
    return {key: f"{run} ({cluster}, {gpus} GPUs)" for key, run, cluster, gpus in rows.rows()}


def _of_feed(store: Store, scope: Scope, run: str) -> dict[str, Given]:
    row = _row(store, "select * from marts.run_input where run_key = $1", scope, run)
    if row is None:
        return {}
    need, most = row["need_bytes_per_gpu_s"], row["most_read_bytes_per_gpu_s"]
    said = (
        (need, "as the job says") if need else (most, "its disks' reads in ten minutes, the most")
    )
    return _known(
        INPUT,
        {
            "gpus": (_span(row["gpus"]), "most at a time"),
            "nodes": (_span(row["nodes"]), "most at a time"),
            "feed_mb_per_gpu_s": (_over(said[0], 1_000_000), said[1]),
            "memory_gb": (_over(row["memory_available_bytes"], 10**9), "the least of its hosts"),
        },
    )


def _of_loss(store: Store, scope: Scope, category: str) -> dict[str, Given]:
    ledger = store.read("select * from marts.ledger_by_category", scope=scope, is_kept=True)
    found = ledger.filter(pl.col("category") == category)
    if found.is_empty():
        return {}
    loss = found.row(0, named=True)
    held = ledger.filter(pl.col("group") == "held")["gpu_ms"].sum()
    longest = "select max(window_ms) from marts.gpu_models"
    window_ms = store.read(longest, scope=scope, is_kept=True).item()
    priced_ms = loss["gpu_ms"] - loss["unpriced_gpu_ms"]
    cost = None if loss["cost"] is None else _exact(loss["cost"]) * MS_PER_HOUR
    lost = _over(loss["gpu_ms"], MS_PER_HOUR)
    return _known(
        LOSSES,
        {
            "lost_gpu_h": (lost, f"{loss['label']}, as far as evidence shows"),
            "in_jobs_gpu_h": (
                lost if loss["group"] == "held" else Span.of(0),
                "all of it"
                if loss["group"] == "held"
                else "none of it: these GPUs were not allocated",
            ),
            "held_gpu_h": (_over(held, MS_PER_HOUR), "all that was allocated"),
            "capacity_gpu_h": (_over(ledger["gpu_ms"].sum(), MS_PER_HOUR), "the ledger adds up"),
            "window_h": (_over(window_ms, MS_PER_HOUR), "with evidence"),
            "price_per_gpu_h": (_over(cost, priced_ms), "mean price of what is lost"),
        },
    )


def _known(view: str, values: Mapping[str, tuple[Span | None, str]]) -> dict[str, Given]:
    """Return the values that are known, each with its view."""
    return {
        name: Given(span, "measured", f"{view}: {origin}")
        for name, (span, origin) in values.items()
        if span is not None
    }


def _exact(value: Any) -> Decimal:
    """Return a number of the database as Decimal; a double by its shortest text."""
    return value if isinstance(value, Decimal) else Decimal(str(value))


def _span(value: Any) -> Span | None:
    return None if value is None else Span.of(_exact(value))


def _over(part: Any, whole: Any) -> Span | None:
    """Return a quotient; None where a part of it is not known or there is nothing to divide by."""
    if part is None or not whole:
        return None
    return Span.of(_exact(part) / _exact(whole))


def _between(least: Any, most: Any, whole: Any) -> Span | None:
    low, high = _over(least, whole), _over(most, whole)
    return None if low is None or high is None else Span(low.lo, max(low.lo, high.hi))


def _plus(one: Any, other: Any) -> Any:
    return None if one is None or other is None else one + other


def _share(part: Any, whole: Any) -> str:
    found = _over(part, whole)
    return "none" if found is None else f"{found.lo * 100:.1f} %"


Reader = Callable[["Store", "Scope", str], dict[str, Given]]
Chooser = Callable[["Store", "Scope"], dict[str, str]]
CHOOSERS: dict[str, tuple[Reader, Chooser]] = {
    "upgrade": (_of_upgrade, _models),
    "halve-a-loss": (_of_loss, _losses),
    "checkpoints": (_of_run, _runs),
    "power-cap": (_of_power_cap, _models),
    "feed": (_of_feed, _reading_runs),
}
