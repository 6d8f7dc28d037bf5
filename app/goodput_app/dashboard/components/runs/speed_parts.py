"""Parts of the run page about its speed: tiles, changes of step time, memory that grows."""

from typing import Any

import polars as pl
import streamlit as st

from goodput_app.dashboard import theme
from goodput_app.dashboard.components import places, tables, tiles
from goodput_app.dashboard.components.tiles import Tile
from goodput_app.dashboard.table_columns import headers
from goodput_app.settings import settings
from goodput_app.text import units

COLUMNS_LEAST = 4  # of a row of tiles; fewer are no wider


def of_accounts(frame: pl.DataFrame) -> None:
    """Draw what accounts got for cost and energy. frame: marts.tokens_by_account."""
    shown = frame.with_columns((pl.col("tokens_per_j") * 1000).alias("tokens_per_kj"))
    header = f"Tokens per {units.currency()}"
    per_cost = st.column_config.NumberColumn(header, format="compact")
    is_known = shown["tokens_per_cost"].count() > 0  # else it says that there is no price
    places.table("speed.tokens", shown, wide={"tokens_per_cost": per_cost} if is_known else None)


def of_models(frame: pl.DataFrame) -> None:
    """Draw what GPU models did for cost and energy, and goodput by throughput beside that by time.

    frame: marts.work_by_gpu_model of all workloads
    """
    known = frame.filter(pl.col("ceiling_held_ms") > 0)
    if places.table("speed.work", frame) and known.height:
        weight = pl.col("ceiling_held_ms")
        names = ("throughput_goodput_ratio", "goodput_ratio")
        work, time = known.select((pl.col(names) * weight).sum() / weight.sum()).row(0)
        st.caption(
            f"Goodput by throughput {units.percent(work)}, by time {units.percent(time)} of "
            f"{units.gpu_time(int(known['ceiling_held_ms'].sum()))} allocated to runs with a "
            f"ceiling: in useful time they work at {units.percent(work / time if time else None)} "
            "of it. The page of a run says where its ceiling is from."
        )


def of_run(speed: dict[str, Any]) -> None:
    """Draw the tiles of a run's speed, and name what is not known. speed: `speed.run_speed`."""
    found = [
        *(_step_time(speed), _throughput(speed), _by_throughput(speed), _mfu(speed)),
        *(_bandwidth(speed), _per_cost(speed), _bound(speed)),
    ]
    known = [tile for tile in found if tile[1] != units.NOT_KNOWN]
    if known:
        for first in range(0, len(known), COLUMNS_LEAST):
            cells = known[first : first + COLUMNS_LEAST]
            tiles.row(f"speed-tiles-{first}", cells, COLUMNS_LEAST)
    missing = [
        f"{label} ({why.rstrip('.')})" for label, value, why in found if value == units.NOT_KNOWN
    ]
    if missing:
        st.caption(theme.markdown_text(f"Not known: {'; '.join(missing)}."))
    if speed["roof_ratio"] is not None:
        st.caption(_roofline(speed))


def _step_time(speed: dict[str, Any]) -> Tile:
    best = speed["best_reason"] or ""
    if speed["best_ratio"] is not None:
        of_best = _step(speed["best_step_s"])
        best = f"{units.percent(speed['best_ratio'])} of its best speed ({of_best})"
    return "Step time", _step(speed["median_step_s"]), best


def _bound(speed: dict[str, Any]) -> Tile:
    text = speed["bound_sentence"] or "nothing is measured"
    value = speed["bound_by"]
    return "Bound by", units.NOT_KNOWN if value in (None, "unknown") else value, text


def _throughput(speed: dict[str, Any]) -> Tile:
    peers = speed["peer_reason"] or ""
    if speed["peer_ratio"] is not None:
        others = units.count(speed["peers"], "other run")
        peers = f"{units.percent(speed['peer_ratio'])} of the median of {others}"
    if speed["tokens_per_s"] is not None:
        second = f"{amount(speed['tokens_per_gpu_s'])} per GPU; {peers}"
        return "Tokens/s", amount(speed["tokens_per_s"]), second
    if speed["samples_per_s"] is not None:
        return "Samples/s", amount(speed["samples_per_s"]), peers
    return "Tokens/s", units.NOT_KNOWN, speed["work_reason"] or ""


def _by_throughput(speed: dict[str, Any]) -> Tile:
    label, ratio = "Goodput by throughput", speed["throughput_goodput_ratio"]
    if ratio is None:
        reason = speed["ceiling_reason"] or "not all steps report tokens, or all samples"
        return label, units.NOT_KNOWN, reason
    ceiling = f"{amount(speed['ceiling_per_gpu_s'])} {speed['work_unit']}/s of a GPU"
    second = (
        f"by time {units.percent(speed['goodput_ratio'])}: retained steps take "
        f"{units.percent(speed['step_ratio'])} of allocated time, at "
        f"{units.percent(speed['ceiling_ratio'])} of the ceiling, {ceiling} "
        f"({speed['ceiling_source']})"
    )
    return label, units.percent(ratio), "; ".join(filter(None, (second, speed["ceiling_reason"])))


def _bandwidth(speed: dict[str, Any]) -> Tile:
    label, peak = "Memory bandwidth", speed["peak_bytes_per_s"]
    if speed["dram_active_ratio"] is None or peak is None:
        what = "DRAM active is not measured" if peak else "no peak of its GPUs is known"
        return label, units.NOT_KNOWN, what
    of = f"{units.percent(speed['dram_active_ratio'])} of the peak {amount(peak)}B/s"
    return label, f"{amount(speed['bytes_per_gpu_s'])}B/s", f"{of}, by DRAM active"


def _roofline(speed: dict[str, Any]) -> str:
    """Return where the run is under the roofline of its GPUs, in a sentence."""
    intensity, ridge = speed["intensity_flops_per_byte"], speed["ridge_flops_per_byte"]
    limit = "memory bandwidth" if intensity < ridge else "arithmetic"
    return (
        f"Roofline of a GPU over allocated time: {amount(speed['flops_per_gpu_s'])}FLOP/s of "
        f"{amount(speed['peak_flops_per_s'])}FLOP/s, {amount(speed['bytes_per_gpu_s'])}B/s of "
        f"{amount(speed['peak_bytes_per_s'])}B/s. At {intensity:,.0f} FLOP/B (ridge: {ridge:,.0f}) "
        f"{limit} allows {amount(speed['roof_flops_per_s'])}FLOP/s, of which the model does "
        f"{units.percent(speed['roof_ratio'])}."
    )


def _mfu(speed: dict[str, Any]) -> Tile:
    target, second = settings().ui.mfu_target, _of_mfu(speed)
    if target is not None and speed["mfu_ratio"] is not None:
        side = "below" if speed["mfu_ratio"] < target else "reaches"
        second += f"; {side} the target, {units.percent(target)}"
    return "MFU", units.percent(speed["mfu_ratio"]), second


def _of_mfu(speed: dict[str, Any]) -> str:
    if speed["mfu_reason"] is not None:
        return str(speed["mfu_reason"])
    if speed["mfu_dtype"] is None:
        return "as the job reports it"
    dtype = f"{speed['mfu_dtype']}{' (assumed)' if speed['is_dtype_assumed'] else ''}"
    peak = f"{'sparse' if speed['is_sparse'] else 'dense'} {dtype} peak"
    return f"of the {peak}, by {speed['mfu_method']}"


def _per_cost(speed: dict[str, Any]) -> Tile:
    per_kj = f"{speed['energy_reason']}"
    if speed["tokens_per_j"] is not None:
        per_kj = f"{amount(speed['tokens_per_j'] * 1000)} per kJ"
    if speed["tokens_per_cost"] is not None:
        value = f"{amount(speed['tokens_per_cost'])} per {units.currency()}"
        return "Tokens per cost", value, per_kj
    reasons = dict.fromkeys(filter(None, (speed["cost_reason"], per_kj)))
    return "Tokens per cost", units.NOT_KNOWN, "; ".join(reasons)


def amount(number: float | None) -> str:
    """Return a count with four digits and a prefix: `466.3 k`, `1.134 M`."""
    if number is None:
        return units.NOT_KNOWN
    for prefix, least in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= least:
            return f"{number / least:.4g} {prefix}"
    return f"{number:.4g}"


def _step(seconds: float | None) -> str:
    """Return the length of a step: differences of a per cent can be seen."""
    if seconds is None or seconds >= 60:
        return units.duration(seconds)
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def epochs(frame: pl.DataFrame) -> None:
    """Draw a run's passes over its data, of which the first fills caches; `frame`: run_epochs."""
    if frame.height > 1:
        tables.show(frame, headers("speed.epochs"), "run_epochs", rows=6)


def feed(frame: pl.DataFrame) -> None:
    """Say what the disks of a run's hosts read for it; `frame`: marts.run_input."""
    for row in frame.iter_rows(named=True):
        text = (
            f"Disks of its hosts read {amount(row['read_bytes_per_gpu_s'])}B/s for each GPU, at "
            f"most {amount(row['most_read_bytes_per_gpu_s'])}B/s over ten minutes"
        )
        if row["need_bytes_per_gpu_s"]:
            text += f"; the job needs {amount(row['need_bytes_per_gpu_s'])}B/s"
        if row["mean_read_bytes"] is not None:
            text += f"; {amount(row['mean_read_bytes'])}B a read"
        if row["dirty_bytes"] is not None:
            text += f"; up to {amount(row['dirty_bytes'])}B of a host waited to be written"
        st.caption(f"{text}. Reads of network file systems are not in it.")
        known = {
            f"processors busy {units.percent(row['cpu_busy_ratio'])}": row["cpu_busy_ratio"],
            f"memory used up to {units.percent(row['memory_used_ratio'])}": row[
                "memory_used_ratio"
            ],
            f"ports {amount(row['port_bytes_per_s'])}B/s a host, the busiest at "
            f"{units.percent(row['line_rate_ratio'])} of its line rate": row["line_rate_ratio"],
        }
        if said := [text for text, value in known.items() if value is not None]:
            st.caption(f"Its hosts: {', '.join(said)}.")


def memory(frame: pl.DataFrame) -> None:
    """Draw the GPUs whose memory grows; nothing where there are none."""
    if frame.is_empty():
        return
    first = frame.row(0, named=True)
    full = ""
    if first["time_to_full_s"] is not None:
        full = f" The first is full in {units.duration(first['time_to_full_s'])}."
    st.warning(
        f"Used memory of {units.count(frame.height, 'GPU')} grows all the time.{full}",
        icon=":material/memory:",
    )
    tables.show(frame, headers("speed.memory"), "memory_growth")


def rhythm(frame: pl.DataFrame) -> None:
    """Say at which distance collectives come where no steps are known; `frame`: inferred_steps."""
    for row in frame.iter_rows(named=True):
        st.caption(
            f"Attempt {row['attempt']}: about {_step(row['period_ms'] / 1000)} a step "
            f"({row['confidence']}; {row['method']}, \u00b1 {_step(row['error_ms'] / 1000)})."
        )
