"""A run beside the last good one before it: same workload, as many GPUs, both as a whole."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from goodput_app.dashboard import theme
from goodput_app.dashboard.components import places
from goodput_app.dashboard.data import marts, speed
from goodput_app.dashboard.figures.bars import text_of
from goodput_app.text import headline, units
from goodput_queries.scope import Scope

ALIKE = 0.01  # speeds that differ by less are the same


def draw(scope: Scope) -> None:
    """Draw the measures of the scope's run and of the one before; nothing where there is none."""
    if (found := speed.run_before(scope)) is None:
        return
    key, is_ok = found
    pair = [_facts(Scope(run=run, teams=scope.teams)) for run in (scope.run, key)]
    if any(facts is None for facts in pair):
        return
    mine, before = (facts or {} for facts in pair)
    with st.container(border=True, gap="xsmall"):
        st.html(_table(mine, before, "last good run" if is_ok else "run before"))
        st.markdown(f"**{verdict(mine['step_s'], before['step_s'])}**")
        page, icon = "pages/before_and_after.py", "compare_arrows"
        places.to_page(page, "Compare the two", icon, run=None, a=key, b=scope.run)


def verdict(step_s: float | None, before_s: float | None) -> str:
    """Return how much faster or slower the steps are; step times are medians."""
    if not step_s or not before_s:
        return "Which is faster is not known: no steps"
    change = before_s / step_s - 1
    if abs(change) < ALIKE:
        return "Same speed"
    return f"{units.percent(abs(change))} {'faster' if change > 0 else 'slower'}"


def _facts(scope: Scope) -> dict[str, Any] | None:
    runs = marts.runs(scope)
    if runs.is_empty():
        return None
    run = runs.row(0, named=True)
    steps = speed.run_speed(scope)
    value, bound = headline.of_run(run)
    length_s = (run["last_end_at"] - run["first_start_at"]).total_seconds()
    step_s = None if steps.is_empty() else steps["median_step_s"][0]
    return {
        "name": run["run_name"],
        "step_s": step_s,
        "Goodput (% of allocated)": f"{value} {bound}".strip(),
        "Median step": units.NOT_KNOWN if step_s is None else f"{step_s:.4g} s",
        "From start to end": units.duration(length_s),
        "Restarts": f"{run['restarts']:,}",
        "Wasted": units.cost(run["wasted_cost"]),
    }


def _table(mine: Mapping[str, Any], before: Mapping[str, Any], which: str) -> str:
    rows = "".join(
        f"<tr><td>{text_of(name)}</td><td>{text_of(mine[name])}</td>"
        f"<td>{text_of(before[name])}</td></tr>"
        for name in mine
        if name not in ("name", "step_s")
    )
    return (
        f'{theme.look("run_before")}<table class="gp-before"><tr><th>'
        f"<b>Against the {which}</b>, whole runs</th>"
        f"<th>this run</th><th>{text_of(before['name'])}</th></tr>{rows}</table>"
    )
