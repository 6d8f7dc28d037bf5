"""The statement as a table: by account, user, run, partition or model, with links."""

import io
from functools import partial
from typing import Any

import polars as pl
import streamlit as st

from goodput_app.dashboard import theme
from goodput_app.dashboard.components import places, scope_bar, tables
from goodput_app.dashboard.components.cost import cost_adjustments
from goodput_app.dashboard.components.cost.cost_parts import in_browser
from goodput_app.dashboard.components.cost.cost_scope import Earlier, Shown
from goodput_app.dashboard.components.rows import downloads
from goodput_app.dashboard.data import statements
from goodput_app.dashboard.scope import View
from goodput_app.dashboard.table_columns import headers
from goodput_app.text import units
from goodput_billing.adjustments.record import Target
from goodput_billing.render.safe_text import harmless
from goodput_queries.scope import iso

RUN_PAGE, RUNS_PAGE = "pages/one_run.py", "pages/all_runs.py"
OVERVIEW_PAGE = "pages/fleet_overview.py"
ROWS_MOST = 10_000  # in the browser; the file has them all
BY_LABELS = {"user": "User", "run": "Run", "partition": "Partition", "model": "GPU model"}
NAMES = headers("cost_statement_table.names")
LABEL_PX = 135
OF_HELD_TIME = ("productive_cost", "own_waste_cost", "platform_waste_cost", "unsettled_cost")


def show(view: View, shown: Shown, before: Earlier | None) -> Target | None:
    """Draw the statement: a row each, and links for the picked one.

    before: earlier days to compare with. Returns what the picked row is to notes, disputes and
    credits; None where none is picked.
    """
    by = _by(shown)
    frame = cost_adjustments.beside(_rows(view, shown, by, before), by, shown)
    drawn = _said(frame).head(ROWS_MOST)
    names = NAMES.only([name for name in NAMES if _is_shown(name, drawn, frame)])
    names["label"] = BY_LABELS.get(by, NAMES["label"])
    ids = drawn.select(pl.concat_str("cluster", "account", separator="|")).to_series()
    is_open = st.query_params.get("line") in ids.to_list()
    table, side = st.columns([2.4, 1], gap="medium") if is_open else (st.container(), None)
    wide = {name: tables.price_column(NAMES[name], help="Total cost / the hours")
            for name in ("cost_per_allocated_gpu_h", "cost_per_productive_gpu_h")}  # fmt: skip
    wide["label"] = st.column_config.TextColumn(names["label"], width=LABEL_PX)
    with table:
        picked = tables.pick(in_browser(drawn), names, "line", ids, wide=wide)
        _footer(frame, shown, by)
    if picked is not None and side is not None:
        with side.container(border=True):
            _picked(picked, by, shown)
    return None if picked is None else _target(picked, by, shown)


def _target(row: dict[str, Any], by: str, shown: Shown) -> Target:
    """Return what a row is: an account, a user or a run on the last day shown."""
    when, cluster = shown.days[-1].day.date, row["cluster"]
    if by == "run":
        return Target(when, row["team"] or "", row["user_name"], row["run_id"], cluster)
    if by == "user":
        return Target(when, "", row["account"] or None, cluster=cluster)
    return Target(when, row["account"] if by == "" else "", cluster=cluster)


def _by(shown: Shown) -> str:
    """Draw what a row is, and return it: empty for an account."""
    left, note = st.columns([1.2, 4], vertical_alignment="bottom")
    with left:
        scope_bar.choice("by", "Group by", BY_LABELS, none="Account")
    by = st.query_params.get("by", "")
    if by not in BY_LABELS:
        return ""
    if len(shown.days) > statements.LINES_DAYS_MOST:
        note.info(
            f"By {BY_LABELS[by].lower()} at most {statements.LINES_DAYS_MOST} days at once: choose "
            "a billing day or a shorter window. Shown by account.",
            icon=":material/date_range:",
        )
        return ""
    return by


def _rows(view: View, shown: Shown, by: str, before: Earlier | None) -> pl.DataFrame:
    days = [day.day for day in shown.days]
    if by:
        with st.spinner("Loading the statement lines of these days", show_time=True):
            scope = view.scope
            frame = statements.breakdown(days, shown.how, by, scope.cluster, scope.team)
        name = "run_id" if by == "run" else "account"
        return frame.with_columns(pl.coalesce(name, "account").alias("label"))
    frame = shown.accounts.with_columns(pl.col("account").alias("label"))
    return frame if before is None or before.then.is_empty() else _against(frame, before)


def _against(frame: pl.DataFrame, found: Earlier) -> pl.DataFrame:
    """Return the rows beside those of earlier days, compared where both are whole."""
    on = ["cluster", "account"]
    before, now = (
        side.select(*on, pl.col("total_cost").cast(pl.Float64).alias(name))
        for side, name in ((found.then, "before_cost"), (found.now, "now_cost"))
    )
    joined = frame.join(before, on=on, how="left", maintain_order="left")
    if not found.is_whole:
        return joined
    joined = joined.join(now, on=on, how="left", maintain_order="left")
    change = pl.col("now_cost") / pl.col("before_cost") - 1
    return joined.with_columns(
        pl.when(pl.col("before_cost") > 0).then(change).alias("change_ratio")
    ).drop("now_cost")


def _said(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the rows with amounts that nothing backs left empty: no price is not 0 dollars."""
    is_priced = pl.col("unpriced_ms") < pl.col("gpu_ms")
    of_use = [
        pl.when(is_priced & pl.col("is_account")).then(name).alias(name) for name in OF_HELD_TIME
    ]
    return frame.with_columns(
        *of_use,
        pl.when(is_priced).then("allocated_cost").alias("allocated_cost"),
        pl.when(is_priced | (pl.col("total_cost") != 0)).then("total_cost").alias("total_cost"),
        pl.when("is_account").then("productive_ms").alias("productive_ms"),
    )


def _is_shown(name: str, drawn: pl.DataFrame, frame: pl.DataFrame) -> bool:
    """Say whether a column is there and says something."""
    if name not in drawn.columns:
        return False
    if name == "cluster":
        return frame["cluster"].n_unique() > 1
    if name == "adjustments":
        return frame[name].null_count() < frame.height
    if name in ("credit_cost", "unpriced_ms", "idle_share_cost"):
        return bool((frame[name] != 0).any())
    return True


def _footer(frame: pl.DataFrame, shown: Shown, by: str) -> None:
    rows = units.count(frame.height, "row")
    if frame.height > ROWS_MOST:
        rows = f"the first {ROWS_MOST:,} of {rows}"
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        first, last = shown.days[0].day.date, shown.days[-1].day.date
        name = f"cost-by-{by or 'account'}-{first}" + ("" if first == last else f"-to-{last}")
        for form in ("csv", "parquet"):
            label = "CSV, all columns" if form == "csv" else "Parquet, all columns"
            data, file = partial(_file, frame, form), f"{name}.{form}"
            downloads.button(label, data, file, f"statement_{form}", look="tertiary")
        st.caption(f"{rows}, highest cost first. Select one for its runs and its ledger.")


def _file(frame: pl.DataFrame, form: str) -> bytes:
    rows = frame.drop("label")
    stream = io.BytesIO()
    if form == "csv":
        rows.with_columns(harmless(pl.selectors.string())).write_csv(stream)
    else:
        rows.write_parquet(stream)
    return stream.getvalue()


def _picked(row: dict[str, Any], by: str, shown: Shown) -> None:
    left, right = st.columns([2.6, 1], vertical_alignment="top")
    left.markdown(f"#### {theme.markdown_text(row['label'] or '(none)')}")
    amount = units.cost(row["total_cost"])
    left.caption(theme.markdown_text(f"{row['cluster']}, {amount}"))
    places.facts(row, {name: header for name, header in NAMES.details.items() if name in row})
    places.close_button(right, "line")
    params = {
        **scope_bar.carried(cluster=row["cluster"], run=None, node=None),
        # the statement's own days, so that the next page shows the time that is charged here
        "from": iso(shown.days[0].day.from_ms),
        "to": iso(shown.days[-1].day.to_ms),
    }
    if by == "run" and row["is_account"] and row["account"]:
        run = {**params, "run": row["account"]}
        st.page_link(RUN_PAGE, label="Open the run", icon=":material/monitoring:", query_params=run)
        return
    if not by and row["is_account"]:
        params["team"] = row["account"]
        st.button(
            "Its runs by cost", key="line_runs", icon=":material/receipt_long:", type="tertiary",
            on_click=scope_bar.go, args=({"by": "run", "team": row["account"], "line": None},),
        )  # fmt: skip
        st.page_link(
            RUNS_PAGE, label="Open its runs", icon=":material/play_circle:", query_params=params
        )
    st.page_link(
        OVERVIEW_PAGE, label="Open its ledger", icon=":material/dashboard:", query_params=params
    )
