"""Parts of the page of findings: the fix list, the inbox, and one finding."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import streamlit as st

from goodput_app.access import finding_state, rows
from goodput_app.access.current import current_identity, is_sign_in_required
from goodput_app.access.identity import Action as Allowed
from goodput_app.dashboard import severities, theme, time_zone
from goodput_app.dashboard.components import places, redraw, scope_bar, states, tables
from goodput_app.dashboard.components.findings import finding_cards
from goodput_app.dashboard.components.rows import cards
from goodput_app.dashboard.data import findings, health
from goodput_app.dashboard.table_columns import headers
from goodput_app.process.store import current_store
from goodput_app.text import confidence, throttling, units
from goodput_queries.errors import GoodputError
from goodput_queries.findings import NAME_MAX_CHARS, NOTE_MAX_CHARS, Action
from goodput_queries.scope import Scope

PAGE = "pages/open_findings.py"
OPEN_STATES = ("open", "acknowledged")
INBOX_MAX = 1_200  # rows of the table: more would take over 700 kB
OLD = timedelta(seconds=60)  # findings that are shown until newer ones are there
FIXES = headers("finding.fixes")
OF_A_WEEK = ("back_week_ms", "back_week_cost")  # not known under an hour of evidence
FINDINGS = headers("finding.findings")
# beside the card of a finding, which says it
FINDINGS_OF_CARD = FINDINGS.hiding((*FINDINGS.hidden, "evidence", "cost", "what_to_do"))


def objectives(frame: pl.DataFrame) -> None:
    """Draw the goodput objectives with their error budgets.

    frame: marts.goodput_objectives
    """
    places.table("finding.objectives", frame)
    if (burning := frame.filter("is_burning")).height:
        names = ", ".join(theme.markdown_text(name) for name in burning["name"])
        st.warning(
            f"The error budget burns fast: {names}.", icon=":material/local_fire_department:"
        )


def fixes(frame: pl.DataFrame, findings: pl.DataFrame) -> None:
    """Draw what to do first, and the findings of the picked row.

    What gives nothing back is folded behind a toggle, unless a link leads to it.
    """
    is_worth = pl.col("back_high_ms") > 0
    folded = frame.filter(~is_worth)
    linked = st.query_params.get("fix") in fix_ids(folded).to_list()
    label = f"Show {folded.height:,} more without recoverable GPU time"
    if folded.height and not st.toggle(label, value=linked, key="fixes_without_worth"):
        frame = frame.filter(is_worth)
    with cards.table_of("fix"):
        picked = _pick_fix(frame)
    finding_cards.fixes(frame, fix_ids(frame))
    if picked is None:
        st.caption("Select a row for its findings and where to look.")
        return
    with st.container(border=True):
        st.markdown(f"#### {theme.markdown_text(picked['what_to_do'])}")
        places.facts(picked, {name: FIXES[name] for name in ("findings", "back_week_ms")})
        low, high = units.gpu_time(picked["back_low_ms"]), units.gpu_time(picked["back_high_ms"])
        back = units.gpu_time(picked["back_ms"])
        st.markdown(
            f"At **{theme.markdown_text(picked['target'])}**: {back} of this time range are "
            f"recoverable, at least {low}, at most {high}."
        )
        of_it = findings.filter(
            (pl.col("fix") == picked["fix"])
            & pl.col("target").eq_missing(picked["target"])
            & pl.col("cluster").eq_missing(picked["cluster"])
            & (pl.col("state") != "dismissed")
        ).sort(~pl.col("is_open"), maintain_order=True)  # no closed ones above what is open
        columns = FINDINGS.hiding((*FINDINGS.hidden, "what_to_do"))
        tables.show(severities.marked(of_it), columns, "of_fix", rows=6)
        where(picked)


def follow(scope: Scope, shown: findings.Found | None) -> None:
    """Draw the page again once newer findings are there; say so where those shown are old."""
    if shown is None:
        states.follows("Findings", lambda: findings.has_newer(scope, shown))
    elif not findings.is_evaluated(scope):
        redraw.draw_again_when("findings", lambda: findings.has_newer(scope, shown))
        if datetime.now(UTC).replace(tzinfo=None) - shown.evaluated_at > OLD:
            at = time_zone.moment(shown.evaluated_at)
            st.caption(f"Findings of {at}; newer ones are being evaluated.")


def _pick_fix(fixes: pl.DataFrame) -> dict[str, Any] | None:
    is_week_known = fixes["back_week_ms"].count() > 0
    columns = FIXES if is_week_known else FIXES.without(OF_A_WEEK)
    return tables.pick(fixes, columns, "fix", fix_ids(fixes), rows=8)


def fix_ids(frame: pl.DataFrame) -> pl.Series:
    """Return what identifies each fix in a link."""
    of = pl.concat_str("fix", "cluster", "target", separator="|", ignore_nulls=True)
    return frame.select(of).to_series()


def inbox(frame: pl.DataFrame) -> None:
    """Draw the findings with their filters, and the picked one."""
    frame = frame.with_columns(finding_ids(frame).alias("id"))
    left, middle, right = st.columns(3)
    with left:
        _choice(
            "state", "State", {"open": "Open", "closed": "Closed", "dismissed": "Dismissed"}, frame
        )
    with middle:
        _choice("severity", "Severity", {one: one.capitalize() for one in severities.LOOKS}, frame)
    with right:
        kinds = sorted(frame["kind"].unique().to_list())
        _choice("kind", "Kind", {kind: kind.capitalize() for kind in kinds}, frame)
    if st.query_params.get("rules"):
        with st.container(horizontal=True, gap="small", vertical_alignment="center"):
            st.caption("The link limits the findings to some kinds.")
            st.button("Show all", key="all_rules", on_click=scope_bar.go, args=({"rules": None},))
    shown = severities.marked(chosen(frame, st.query_params.to_dict()))
    if shown.is_empty():
        st.caption("No finding matches these filters.")
        return
    if shown.height > INBOX_MAX:
        st.caption(
            f"The {INBOX_MAX:,} most severe and costly of {shown.height:,} findings; "
            "`goodput findings` has all."
        )
        linked = pl.col("id") == st.query_params.get("finding", "")
        shown = pl.concat([shown.head(INBOX_MAX), shown[INBOX_MAX:].filter(linked)])
    is_beside = cards.place("finding") == "table"
    left, side = st.columns([1, 1], gap="medium") if is_beside else (st.container(), None)
    with left, cards.table_of("finding"):
        columns = FINDINGS_OF_CARD if is_beside else FINDINGS
        picked = tables.pick(shown, columns, "finding", shown["id"], rows=10)
        if picked is None:
            st.caption("Select a row for its evidence, where to look, and to acknowledge it.")
    with left:
        finding_cards.findings(shown, shown["id"], one)
    if picked is not None and side is not None:
        with side.container(key="finding_beside"):
            one(picked)


def linked(frame: pl.DataFrame) -> None:
    """Draw the finding to which a link leads; one that was chosen in the list stands there.

    frame: marts.findings
    """
    wanted = st.query_params.get("finding")
    if wanted is None or cards.place("finding") is not None:
        return
    found = frame.filter(finding_ids(frame) == wanted)
    if found.is_empty():
        st.info("The finding of this link is not in this time range.", icon=":material/flag:")
    else:
        one(found.row(0, named=True))


def finding_ids(frame: pl.DataFrame) -> pl.Series:
    """Return what identifies each finding in a link: rule and subject, and which time from last."""
    place = pl.col("since_at").rank("ordinal", descending=True).over("finding_key")
    return frame.select(
        pl.when(place == 1)
        .then("finding_key")
        .otherwise(pl.concat_str("finding_key", place, separator="@"))
    ).to_series()


def chosen(frame: pl.DataFrame, wanted: Mapping[str, str]) -> pl.DataFrame:
    """Return the findings that the filters of the URL leave; `rules`: names with commas."""
    state = wanted.get("state")
    if state == "open":
        is_now = pl.col("is_open") & pl.col("state").is_in(OPEN_STATES)
        frame = frame.filter(is_now)
    elif state:
        frame = frame.filter(pl.col("state") == state)
    for name in ("severity", "kind"):
        if wanted.get(name):
            frame = frame.filter(pl.col(name) == wanted[name])
    if wanted.get("rules"):
        frame = frame.filter(pl.col("rule").is_in(wanted["rules"].split(",")))
    return frame


def _choice(param: str, label: str, options: dict[str, str], frame: pl.DataFrame) -> None:
    counted = {
        value: f"{text} ({chosen(frame, {param: value}).height:,})"
        for value, text in options.items()
    }
    scope_bar.choice(param, label, counted)


def one(row: Mapping[str, Any]) -> None:
    """Draw a finding: what it means, evidence, cost, links, and what people say of it."""
    with st.container(border=True):
        left, right = st.columns([5, 1], vertical_alignment="top")
        left.markdown(f"#### {theme.markdown_text(row['title'])}")
        left.caption(theme.markdown_text(row["subject"] or "the fleet"))
        places.close_button(right, "finding")
        with st.container(horizontal=True, gap="small"):
            severities.badge(row["severity"])
            st.badge(
                row["confidence"], color=theme.CONFIDENCE_COLOURS.get(row["confidence"], "gray")
            )
            st.badge(row["state"], color="gray")
            if row["gpu_ms"] is not None:
                st.badge(units.gpu_time(row["gpu_ms"]), color="gray")
                st.badge(units.cost(row["cost"]).replace("$", r"\$"), color="gray")
        st.caption(theme.markdown_text(confidence.with_hit_rate(row)))
        until = row["until_at"]
        span = (
            time_zone.window(row["since_at"], until)
            if until
            else f"since {time_zone.moment(row['since_at'])}"
        )
        st.markdown(f"**When:** {span}")
        st.markdown(f"**Evidence:** {theme.markdown_text(row['evidence'])}")
        if row["rule"] == "throttled_gpu":
            _recurrence(row["gpu_uuid"])
        st.markdown(f"**What to do:** {theme.markdown_text(row['what_to_do'])}")
        if row["said_by"]:
            said = f": {row['note']}" if row["note"] else ""
            st.markdown(
                f"**{theme.markdown_text(row['said_by'])}** says{theme.markdown_text(said)}"
            )
        where(row)
        say(row)


def _recurrence(gpu_uuid: str) -> None:
    """Say whether throttling of the GPU is chronic, to who sees all teams: it is of all of them."""
    window = scope_bar.required_view().scope
    scope = Scope(from_ms=window.from_ms, to_ms=window.to_ms, gpu_uuid=gpu_uuid)
    if not rows.sees_all(scope):
        return
    if text := throttling.recurrence(health.throttled_gpus(scope)):
        st.markdown(f"**Recurrence:** {theme.markdown_text(text)}")


def where(row: Mapping[str, Any]) -> None:
    """Draw links to what a finding or a fix is about."""
    places.links({**row, "run_id": row.get("run_name") or row.get("run_key")})


def say(row: Mapping[str, Any]) -> None:
    """Draw the form with which a person acknowledges, dismisses or reopens a finding."""
    key, who = row["finding_key"], current_identity()
    if not who.may(Allowed.SET_FINDING_STATE):
        st.caption("Operators acknowledge and dismiss findings; ask an admin for that role.")
        return
    with st.form(f"say_{key}", border=False):
        name, note = st.columns([1, 3])
        if is_sign_in_required():
            name.text_input("Your name", value=who.name, key="signed_in_as", disabled=True)
        else:
            name.text_input("Your name", key="said_by", max_chars=NAME_MAX_CHARS)
        note.text_input("Note or reason", key=f"note_{key}", max_chars=NOTE_MAX_CHARS)
        with st.container(horizontal=True, gap="small"):
            is_said = row["state"] in ("acknowledged", "dismissed")
            actions: tuple[Action, ...] = (
                ("reopen", "note") if is_said else ("acknowledge", "dismiss", "note")
            )
            asked = [
                a for a in actions if st.form_submit_button(a.capitalize(), key=f"do_{a}_{key}")
            ]
    if asked:
        try:
            finding_state.record(
                current_store(),
                row,
                asked[0],
                who.name if is_sign_in_required() else st.session_state["said_by"],
                st.session_state[f"note_{key}"],
            )
        except GoodputError as error:
            st.error(theme.markdown_text(str(error)))
        else:
            findings.forget()  # they have the state of before
            st.rerun()
