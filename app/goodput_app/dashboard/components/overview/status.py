"""The first sentence of the Overview: what is wrong now, whatever time range is shown.

It names the worst open finding with its effect and owner, the other pages and tickets, and which
clusters are not checked, since their data end earlier.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import polars as pl
import streamlit as st

from goodput_app.access.current import current_identity
from goodput_app.access.identity import Action as Allowed
from goodput_app.dashboard import theme, time_zone
from goodput_app.dashboard.components import places, scope_bar
from goodput_app.dashboard.components.findings import finding_parts
from goodput_app.dashboard.data.findings import Found
from goodput_app.dashboard.figures.bars import text_of
from goodput_app.dashboard.scope import View
from goodput_app.dashboard.severities import LOOKS, badge_html
from goodput_app.text import units
from goodput_app.text.sentences import sentence
from goodput_app.weekly.words import FAULTS

WANTED = ("page", "ticket")
OTHERS_SHOWN = 4
UNCHECKED_AFTER = timedelta(minutes=15)
AROUND = timedelta(minutes=30)  # of an event, on the page that it opens
MINUTE_S = 60.0
WORDS = {"ok": "\N{CHECK MARK} OK", "partial": "Partial", "wait": "Checking"}


@dataclass(frozen=True)
class Status:
    """What the sentence says. kind: a severity or a key of WORDS; first: its finding."""

    kind: str
    said: str
    detail: str
    first: dict[str, Any] | None = None


def open_now(findings: pl.DataFrame) -> pl.DataFrame:
    """Return the open pages and tickets, the worst first: what is broken before what is unused.

    findings: rows of marts.findings, by severity and cost
    """
    now = findings.filter(
        pl.col("is_open")
        & pl.col("state").is_in(finding_parts.OPEN_STATES)
        & pl.col("severity").is_in(WANTED)
    )
    is_less = [pl.col("severity") != WANTED[0], ~pl.col("kind").is_in(FAULTS)]
    return now.sort(*is_less, maintain_order=True)


def draw(
    found: Found | None, rules: int, clusters: pl.DataFrame, outages: pl.DataFrame, view: View
) -> None:
    """Draw the sentence.

    found: of the latest range, None while it is evaluated for the first time; rules: how many
    there are; clusters: marts.clusters; outages: marts.node_outages
    """
    unchecked = _unchecked(clusters, view)
    ends = dict(clusters.select("cluster", "as_of_at").iter_rows())
    shown = status(found, rules, unchecked, outages, ends)
    with st.container(key=f"status_{shown.kind}", gap="xsmall"):
        said, buttons = st.columns([4, 1.25], vertical_alignment="top")
        with said:
            st.html(
                f'<div class="gp-said" role="heading" aria-level="2">{_word(shown.kind)}'
                f'{text_of(shown.said)}</div><div class="gp-detail">{shown.detail}</div>'
            )
        if shown.first is not None:
            with buttons.container(
                key="status_do", horizontal=True, gap="small", horizontal_alignment="right"
            ):
                _acknowledge(shown.first)
                _open(shown.first)
        if found is not None:
            _others(found, shown.first, unchecked, view)


def status(
    found: Found | None,
    rules: int,
    unchecked: str,
    outages: pl.DataFrame,
    ends: Mapping[str, datetime],
) -> Status:
    """Return what the sentence says; see `draw`.

    unchecked: which clusters are not checked; ends: of the data of each cluster
    """
    if found is None:
        return Status("wait", "Rules are being evaluated", "What is wrong now follows.")
    now = open_now(found.findings)
    if not now.is_empty():
        first = now.row(0, named=True)
        said = sentence(first["title"], first["subject"] or "")
        return Status(first["severity"], said, _detail(first, outages, ends), first)
    said = "No page and no ticket is open"
    evaluated = f"{units.count(rules, 'rule')} evaluated"
    closed = found.findings.filter((pl.col("open_severity") == "page") & ~pl.col("is_open"))
    if not closed.is_empty():
        last = closed.sort("until_at").row(-1, named=True)
        ended = time_zone.moment(last["until_at"])
        evaluated += f" · last page closed {text_of(ended)} ({text_of(last['subject'] or 'fleet')})"
    return Status("partial" if unchecked else "ok", said, evaluated)


def _lost_since(row: Mapping[str, Any], outages: pl.DataFrame) -> datetime:
    """Return since when what a finding is about loses GPU time.

    A node that is being drained runs its jobs to their end: its loss begins after its drain.
    """
    of_it = outages.filter(
        pl.col("end_at").is_null()
        & (pl.col("cluster") == row["cluster"])
        & (pl.col("node") == (row["node"] or ""))
        & (pl.col("out_at") > row["since_at"])
    )
    since: datetime = row["since_at"]
    return since if of_it.is_empty() else of_it["out_at"].item(0)


def length(row: Mapping[str, Any], ends: Mapping[str, datetime]) -> float:
    """Return for how long a finding is known to be, in seconds. ends: of the data of clusters."""
    end = ends.get(row["cluster"], max(ends.values()))
    seconds: float = (end - row["since_at"]).total_seconds()
    return max(0.0, seconds)


def _detail(row: Mapping[str, Any], outages: pl.DataFrame, ends: Mapping[str, datetime]) -> str:
    """Return since when, what is known, what it costs, and who has it, as HTML."""
    lost_at = _lost_since(row, outages)
    length_s = length({**row, "since_at": lost_at}, ends)
    since = f"Since {time_zone.moment(row['since_at'])} ({units.duration(length(row, ends))})"
    if lost_at > row["since_at"]:
        since += f", out of use since {time_zone.moment_of(lost_at, row['since_at'])}"
    parts = [text_of(since)]
    if row["cost"] is not None and length_s >= MINUTE_S:
        parts.append(text_of(f"{units.cost(row['cost'] * 3600 / length_s)} an hour"))
        parts.append(text_of(f"{units.cost(row['cost'])} so far"))
    elif row["gpu_ms"]:
        parts.append(text_of(f"{units.gpu_time(row['gpu_ms'])} so far"))
    said = "not acknowledged"
    if row["state"] == "acknowledged":
        said = f"acknowledged by {text_of(row['said_by'] or 'an operator')}"
    owner = f"team {row['team']}" if row["owner"] == "team" and row["team"] else row["owner"]
    parts.append(f"owner <b>{text_of(owner)}</b>, {said}")
    evidence = text_of(row["evidence"] or "")
    shown = f'<span class="gp-evidence" title="{evidence}">{evidence}</span>'
    return f"{' · '.join(parts)}{shown}"


def marks(outages: pl.DataFrame, view: View) -> list[tuple[datetime, str, str]]:
    """Return when nodes went down or were drained in the time range: time, text, colour.

    outages: marts.node_outages
    """
    return [
        (at, f"{LOOKS[kind].glyph} {node} {state}", LOOKS[kind].line)
        for at, node, state in outages.select("start_at", "node", "state").iter_rows()
        if view.start <= at < view.end and (kind := "page" if state == "down" else "ticket")
    ]


def _word(kind: str) -> str:
    if kind in LOOKS:
        return badge_html(kind)
    return f'<span class="gp-word {kind}">{WORDS[kind]}</span>'


def _acknowledge(row: Mapping[str, Any]) -> None:
    """Draw the button with which a person takes a finding, where they may and nobody has."""
    may = current_identity().may(Allowed.SET_FINDING_STATE)
    if may and row["state"] == "open":
        with st.popover("Acknowledge", type="primary"):
            finding_parts.say(row)


def _open(row: Mapping[str, Any]) -> None:
    times: tuple[datetime, datetime] | None = None
    if row["node"]:
        end = row["until_at"] or scope_bar.required_view().as_of
        times = row["since_at"] - AROUND, end
        places.to_node(row["node"], row["cluster"], times, verb="Open ")
    elif row["run_key"] and row["run_name"]:
        places.to_run(row["run_key"], row["run_name"])
    else:
        _link("Open finding", finding=row["finding_key"])


def _others(found: Found, first: Mapping[str, Any] | None, unchecked: str, view: View) -> None:
    """Draw the other pages and tickets by name, grouped by rule, and the number of notes."""
    now = open_now(found.findings)
    rest = now[1:]
    notes = found.findings.filter(pl.col("is_open") & (pl.col("severity") == "note")).height
    with st.container(
        key="status_others", horizontal=True, gap="small", vertical_alignment="center"
    ):
        if first is not None:
            st.markdown(f"**{_counts(rest, first['severity'])}**")
        groups = rest.group_by("rule", maintain_order=True).agg(pl.len(), pl.all().first())
        for row in groups.head(OTHERS_SHOWN).iter_rows(named=True):
            if row["len"] == 1:
                label = sentence(row["title"], row["subject"] or "")
                _link(label, finding=row["finding_key"])
            else:
                _link(f"{row['title']} ({row['len']:,})", state="open", rules=row["rule"])
        if unchecked:
            st.markdown(theme.markdown_text(unchecked))
        st.markdown(units.count(notes, "note"))
        if view.mode in scope_bar.MOVING:
            st.markdown(f"checked {time_zone.moment_of(found.evaluated_at, view.now)}")
        _link("All findings", state="open")


def _counts(rest: pl.DataFrame, first: str) -> str:
    pages, tickets = (rest.filter(pl.col("severity") == kind).height for kind in WANTED)
    more = {"page": pages, "ticket": tickets}
    said = [] if first == "page" else ["Nobody is paged"]
    said += [f"{n:,} more {kind}{'' if n == 1 else 's'}" for kind, n in more.items() if n]
    return ", ".join(said) or "Nothing else open"


def _link(label: str, **params: str) -> None:
    st.page_link(
        finding_parts.PAGE,
        label=theme.markdown_text(label, 60),
        query_params=scope_bar.carried(**{"from": None, "to": None}) | params,
    )


def _unchecked(clusters: pl.DataFrame, view: View) -> str:
    """Return which clusters have no data up to now, and how many GPUs that are; or nothing."""
    if view.scope.cluster is not None:
        clusters = clusters.filter(pl.col("cluster") == view.scope.cluster)
    late = clusters.filter(pl.col("as_of_at") < view.now - UNCHECKED_AFTER).sort("as_of_at")
    named = [
        f"{theme.printable(row['cluster'])} after {time_zone.moment(row['as_of_at'])}"
        + (f" ({units.count(row['gpus'], 'GPU')})" if row["gpus"] else "")
        for row in late.head(2).iter_rows(named=True)
    ]
    if late.height > len(named):
        named.append(f"{late.height - len(named)} more clusters")
    return f"Not checked: {', '.join(named)}" if named else ""
