"""The wall: pages and tickets, three numbers and the map, to be read from four metres."""

from datetime import datetime

import polars as pl
import streamlit as st

from goodput_app.dashboard import flags, time_zone
from goodput_app.dashboard.components import redraw
from goodput_app.dashboard.components.fleet import fleet_now, fleet_parts
from goodput_app.dashboard.components.overview import status
from goodput_app.dashboard.data import findings, fleet, marts
from goodput_app.dashboard.figures.fleet import wall
from goodput_app.dashboard.scope import View
from goodput_app.text import headline, units
from goodput_app.text.sentences import sentence

WRONG_SHOWN = 4


def draw(view: View) -> None:
    """Draw the wall of a view, for who sees all teams."""
    found = findings.known(of_all := flags.scope_of(view.scope))
    if not findings.is_evaluated(of_all):
        redraw.draw_again_when("wall", lambda: findings.has_newer(of_all, found))
    of_findings = None if found is None else found.findings
    of_place = marts.of_any_owner(view.scope, view.scope.bucket_ms)
    states = fleet.gpu_states(view.scope)
    summary = marts.goodput_summary(of_place).row(0, named=True)
    ladder = marts.evidence_ladder(of_place).row(0, named=True)
    numbers = [
        wall.Number(*one)
        for one in fleet_now.three(
            summary,
            headline.headline(summary, ladder, of_place),
            findings.losing_now(of_place),
            states,
        )
    ]
    coloured = fleet_parts.grouped(states, marts.ledger_by_category(of_place))
    cells, _ = fleet_parts.cells(coloured, None)
    now = None if of_findings is None else status.open_now(of_findings)
    st.html(
        wall.page(
            band(now, view.mode, view.now),
            numbers,
            cells,
            fleet_now.marks(of_findings),
            [] if now is None else _listed(now.head(WRONG_SHOWN)),
            _rest(now),
        )
    )


def band(now: pl.DataFrame | None, mode: str, at: datetime) -> wall.Wrong:
    """Return what stands on top: the open pages by name, else the tickets, else that all is well.

    now: `status.open_now`, None while findings are evaluated
    """
    when = f"{mode.lower()} {time_zone.local(at):%H:%M} {time_zone.suffix(time_zone.local(at))}"
    if now is None:
        return wall.Wrong("not known", "Findings are being evaluated", "", when)
    for severity in status.WANTED:
        of_it = now.filter(pl.col("severity") == severity)
        if of_it.height:
            names = ", ".join(
                sentence(title, subject or "")
                for title, subject in of_it.select("title", "subject").head(2).iter_rows()
            )
            open_ones = of_it.filter(pl.col("state") == "open").height
            said = "not acknowledged" if open_ones else "acknowledged"
            return wall.Wrong(
                severity, f"{units.count(of_it.height, severity)}: {names}", said, when
            )
    return wall.Wrong("well", "No page and no ticket is open", "", when)


def _listed(now: pl.DataFrame) -> list[wall.Wrong]:
    """Return rows of `status.open_now`, each with how long it lasts."""
    ends = dict(marts.clusters().select("cluster", "as_of_at").iter_rows())
    found = []
    for row in now.iter_rows(named=True):
        said = sentence(row["title"], row["subject"] or "")
        length = units.duration(status.length(row, ends))
        found.append(wall.Wrong(row["severity"], said, row["evidence"] or "", length))
    return found


def _rest(now: pl.DataFrame | None) -> str:
    if now is None:
        return ""
    rest = now[WRONG_SHOWN:]
    counts = [(rest.filter(pl.col("severity") == one).height, one) for one in status.WANTED]
    said = [
        f"{number:,} more {one}{'' if number == 1 else 's'}" for number, one in counts if number
    ]
    return ", ".join(said)
