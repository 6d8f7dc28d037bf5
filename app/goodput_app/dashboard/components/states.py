"""What a page shows when it cannot show its answer: first run, empty, in error."""

import contextlib
import logging
import time
from collections.abc import Callable, Collection, Iterator

import polars as pl
import streamlit as st

from goodput_app.access import rows
from goodput_app.dashboard import theme, time_zone
from goodput_app.dashboard.components import redraw, scope_bar, search, tables
from goodput_app.dashboard.data import kept, lake, marts
from goodput_app.dashboard.scope import View
from goodput_app.dashboard.table_columns import headers
from goodput_app.process import usage
from goodput_app.process.usage import BusyError
from goodput_app.text import evidence, units
from goodput_queries.errors import NotPermittedError
from goodput_queries.scope import Scope

log = logging.getLogger(__name__)
FIRST_STEPS = (  # title, command, what it does, what appears
    (
        "Look at the demo",
        "goodput demo",
        "A recorded session on real GPUs and a synthetic fleet, in a dashboard of its own.",
        "Overview with five weeks of a fleet: its losses, and what to do first.",
    ),
    (
        "Import your files",
        "goodput ingest auto PATH --db FILE",
        "Accounting, telemetry, job events, job logs; the format is detected.",
        "your runs and where their GPU-hours went. Data says what each missing source would add.",
    ),
    (
        "Connect your sources",
        "goodput doctor --db FILE",
        "Says what is reachable from here, and the lines of goodput.toml that connect it.",
        "what is wrong now, within minutes; findings and their notifications.",
    ),
)
LATER_S = 5.0  # without the interpreter
WITHHELD = "Not shown: it contains rows of other teams."


def first_run() -> None:
    """Show three steps to one's own data, and what is missing in what was loaded."""
    st.title("Where did the GPU-hours go?", anchor=False)
    is_building = ledger_is_being_built()
    if not is_building and marts.has_rows():
        st.info(
            "The loaded rows contain neither a GPU inventory nor a job. Ingest sacct (Slurm "
            "accounting) or NVML telemetry as well. The Data page lists what was ingested.",
            icon=":material/join_inner:",
        )
    elif not is_building:
        st.markdown("This database is empty. Three steps fill it:")
    if not is_building:
        _first_steps()
        _await_data(marts.state())
    awaited = "ledger is built" if is_building else "first data arrives"
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"This page refreshes when the {awaited}.", width="content")
        st.page_link("pages/documentation.py", label="Help: words, sources, set-up",
                     icon=":material/help:")  # fmt: skip


def ledger_is_being_built() -> bool:
    """Say that no ledger of the loaded rows is there yet, where that is so."""
    if not marts.has_rows() or marts.is_built():
        return False
    st.info(
        "The ledger of the loaded rows is being built, as after an upgrade. If that takes long, "
        "the log of the server says why; `goodput build --db FILE` builds it without a server.",
        icon=":material/construction:",
    )
    _await_data(marts.state())
    return True


def _first_steps() -> None:
    for number, (column, (title, command, what, appears)) in enumerate(
        zip(st.columns(3), FIRST_STEPS, strict=True), start=1
    ):
        with column.container(border=True, height="stretch"):
            st.subheader(f"{number}. {title}", divider="gray")
            st.markdown(what)
            st.code(command, language="bash")
            st.markdown(f"**What appears:** {appears}")
    if rows.teams() is None:
        st.subheader("What each source shows, and where", anchor=False)
        missing_sources(marts.sources()["tables"].explode().to_list())


def missing_sources(loaded: Collection[str]) -> None:
    """Draw what each kind of evidence that is missing would show. loaded: raw tables with rows."""
    if not (kinds := evidence.missing(loaded)):
        st.caption("Each kind of evidence that Goodput reads is there.")
        return
    shown = pl.DataFrame([
        {"evidence": kind.evidence, "shows": kind.shows, "pages": ", ".join(kind.pages),
         "sources": ", ".join(kind.sources)}
        for kind in kinds
    ])  # fmt: skip
    tables.show(shown, headers("data_health.missing"), "missing_sources")
    params = scope_bar.carried() | {"doc": "connect"}
    help_page, icon = "pages/documentation.py", ":material/help:"
    st.page_link(help_page, label="How to connect them", icon=icon, query_params=params)


def refused_build() -> None:
    """Warn on every page that the ledger is that of an earlier build, where the last one failed."""
    if marts.is_refused():
        st.warning(
            "The ledger is not up to date: the checks of the last build failed, and the ledger of "
            "the build before is shown. Findings says which rows.",
            icon=":material/sync_problem:",
        )


@st.fragment(run_every=5)
def _await_data(seen: marts.State) -> None:
    if marts.state() != seen:
        st.rerun()


def no_such_page() -> None:
    """Draw what an address shows that is not of a page."""
    st.title("Page not found", anchor=False)
    st.markdown("The address is not of a page of Goodput. The menu has all pages.")
    overview = "pages/fleet_overview.py"
    st.page_link(
        overview,
        label="Open Overview",
        icon=":material/dashboard:",
        query_params=scope_bar.carried(),
    )


def is_empty(view: View, title: str) -> bool:
    """Say why there is nothing to show, if so, and offer the way out. title: of the page."""
    if marts.goodput_summary(view.scope)["capacity_ms"].item() > 0:
        return False
    run = view.scope.run
    st.title(theme.markdown_text(f"{title} {run}" if run else title), anchor=False)
    window = Scope(from_ms=view.scope.from_ms, to_ms=view.scope.to_ms)
    runs_withheld(view)
    if view.filters and marts.goodput_summary(window)["capacity_ms"].item() > 0:
        named = ", ".join(f"{k} {theme.markdown_text(v)}" for k, v in view.filters.items())
        st.info(
            f"No data in this time range matches the filters ({named}).",
            icon=":material/filter_alt:",
        )
        if not run:  # of which the link to its own time leads further
            st.button("Clear filters", key="empty_clear", on_click=scope_bar.clear_filters)
    elif not rows.sees_all(view.scope):
        st.info(
            f"Your teams had no GPU in {time_zone.window(view.start, view.end)}.",
            icon=":material/hourglass_empty:",
        )
    else:
        last = time_zone.moment(view.as_of)
        st.info(
            f"No data in {time_zone.window(view.start, view.end)}. The last data is from {last}.",
            icon=":material/hourglass_empty:",
        )
        ago = units.ago(view.as_of, view.now) if view.mode == "LIVE" else last
        st.button(
            f"Jump to the last data ({ago})", key="empty_jump", on_click=scope_bar.jump_to_data
        )
    if run is not None:
        search.link_to_time_of(run)
    return True


def withheld() -> None:
    """Draw what stands in the place of rows that the reader does not see."""
    st.info(WITHHELD, icon=":material/visibility_off:")


def require_all_teams(scope: Scope) -> None:
    """End a page that is of all teams here for a reader of some, and say so."""
    if not rows.sees_all(scope):
        withheld()
        st.stop()


@contextlib.contextmanager
def whole_page() -> Iterator[None]:
    """Draw a page; what is read outside of its panels may be withheld as well."""
    try:
        yield
    except NotPermittedError:
        withheld()


@contextlib.contextmanager
def own_limits() -> Iterator[None]:
    """Draw a page, which counts; where the reader is over their limit later, and say so above it.

    Else somebody who opens pages without end would take the interpreter from all others.
    """
    kept.refusal.set(None)
    place = st.empty()
    if kept.is_refused():
        time.sleep(LATER_S)
    try:
        with usage.account().evaluating():
            yield
    except BusyError as error:
        kept.refusal.set(error)
    finally:
        if (refusal := kept.refusal.get()) is not None:
            place.warning(
                f"Last answers are shown, where there are any: {theme.markdown_text(refusal)}",
                icon=":material/hourglass_top:",
            )
            redraw.draw_again_when("limits", lambda: not kept.is_refused())


def runs_withheld(view: View) -> None:
    """Say that a reader does not see all runs, and how many, on days that are over."""
    if rows.sees_all(view.scope):
        return
    runs, others = marts.runs_withheld(view.scope)
    said = "Runs of other teams are not shown."
    if others:
        said += (
            f" On the days (UTC) of this time range that are over they are {others:,} of "
            f"{units.count(runs, 'run')}."
        )
    st.caption(said)


def follows(name: str, is_ready: Callable[[], bool]) -> None:
    """Say that a part is evaluated and follows; the page is drawn again once it is ready."""
    st.caption(f":material/hourglass_top: {name} are being evaluated.")
    redraw.draw_again_when(name.lower(), is_ready)


def say_which_readings(view_name: str) -> bool:
    """Say from when on a view has single readings; return whether the time range begins before."""
    first = lake.first_reading_of(view_name)
    shown = None if first is None else scope_bar.view()
    if shown is None or first is None or shown.start >= first:
        return False
    st.caption(
        f":material/database: Single readings before {time_zone.moment(first)} are in the "
        "lake only: what they alone would show of earlier times is missing here."
    )
    return True


@contextlib.contextmanager
def folded(title: str, param: str) -> Iterator[bool]:
    """Draw a part that is folded at first, and say whether it is open: only then it is read.

    param: of the link, by which something in it is picked; a link with it opens the part
    """
    is_asked = param in st.query_params
    part = st.expander(title, expanded=is_asked, key=f"{param}_fold", on_change="rerun")
    with part:
        yield bool(part.open)


@contextlib.contextmanager
def panel(title: str, view_name: str, *, help: str | None = None) -> Iterator[None]:  # noqa: A002 -- Streamlit's word
    """Draw a part of a page; its error is shown in its place, the rest of the page stays."""
    with st.container():
        if title:
            st.subheader(title, help=help, anchor=False)
        try:
            say_which_readings(view_name)
            yield
        except NotPermittedError:
            withheld()
        except BusyError as error:
            kept.refusal.set(error)
            st.caption(":material/hourglass_top: Not evaluated yet.")
        except Exception as error:
            log.exception("panel %s (%s)", title, view_name)
            st.error(
                f"This panel could not be drawn from `{view_name}`: {theme.markdown_text(error)}",
                icon=":material/error:",
            )
            st.button("Retry", key=f"retry_{title}_{view_name}", on_click=st.cache_data.clear)
