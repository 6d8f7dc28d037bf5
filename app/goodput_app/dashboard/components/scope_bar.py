"""What the page is about: window and filters, all of it in the URL, shown on top of every page.

The query string is the only truth: widgets are set from it on every run and write back to it, so
that the same link shows the same view and the browser's Back undoes a choice.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import polars as pl
import streamlit as st

from goodput_app.access import rows
from goodput_app.dashboard import theme, time_zone
from goodput_app.dashboard.components import time_picker, wall
from goodput_app.dashboard.data import freshness, marts, search
from goodput_app.dashboard.scope import View, in_whole_hours, of_data
from goodput_app.page_links import FILTERS
from goodput_app.process.replay import current_replay
from goodput_app.process.store import current_store
from goodput_app.settings import settings
from goodput_app.text import units
from goodput_app.time_expressions import last_week, moment_ms
from goodput_queries.errors import QueryError
from goodput_queries.scope import Scope, epoch_ms, utc_at

CARRIED = (*FILTERS, "from", "to", time_picker.AGAINST, "refresh", time_zone.PARAM, wall.PARAM)
ALL = ""
UNFOLDED = "scope_is_unfolded"
CHOICES_MAX = 5_000
BUCKETS_MAX = 200
STEPS_OF_A_WINDOW = 1_500  # one that moves with the clock moves by steps: its answers are kept
SECOND_MS = 1_000
BUCKETS_MS = tuple(
    seconds * SECOND_MS
    for seconds in (
        *(1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800),
        *(3600, 7200, 10_800, 21_600, 43_200, 86_400),
    )
)
COST_RANGE = "now-30d"  # money is looked at by the month, whatever other pages begin with
LIVE_WITHIN = timedelta(minutes=2)
MODES: dict[str, theme.Badge] = {
    "LIVE": "green",
    "RECORDED": "blue",
    "DEMO": "violet",
    "REPLAY": "orange",
}
MOVING = ("LIVE", "REPLAY")  # modes whose ranges end with a clock


def bucket_ms(window_ms: int, most: int = BUCKETS_MAX) -> int:
    """Return the finest bucket of which the window holds at most so many; never below 1 s."""
    return next((b for b in BUCKETS_MS if window_ms <= b * most), BUCKETS_MS[-1])


def carried(**changes: str | None) -> dict[str, str]:
    """Return the query parameters that a link to another page takes along; None leaves one out."""
    kept: dict[str, str | None] = {name: st.query_params.get(name) for name in CARRIED}
    return {name: value for name, value in {**kept, **changes}.items() if value}


def view(default_range: str | None = None) -> View | None:
    """Return what the URL asks for; None where the database holds nothing yet.

    default_range: where the window begins if the URL does not say; else as the settings say.
    """
    clusters = marts.clusters()
    if clusters.is_empty():
        return None
    wanted: dict[str, Any] = {name: st.query_params.get(name) or None for name in FILTERS}
    first, as_of = extent_of(wanted["cluster"])
    wall = datetime.now(UTC).replace(tzinfo=None)
    mode = _mode(as_of, wall)
    now = wall if mode == "LIVE" else _extent(clusters)[1]
    if (replay := current_replay()) is not None:
        mode, now = "REPLAY", replay.clock.now()
    begin = st.query_params.get("from") or default_range or settings().ui.range
    until = st.query_params.get("to") or "now"
    start, end, problem = _window(begin, until, now, is_moving=mode in MOVING)
    if start >= as_of and mode not in MOVING and "now" in begin:
        # the cluster has nothing in the range that ends with the whole database
        now = as_of
        start, end, problem = _window(begin, until, now, is_moving=False)
    run_key = wanted["run"]
    has_range = {"from", "to"} & st.query_params.keys()
    if run_key and not has_range and (own := search.time_elsewhere(run_key, start, end)):
        (start, end), (begin, until) = own, map(time_zone.iso, own)
    start, end = of_data(start, end, first, as_of)
    start, end = in_whole_hours(start, end, clusters["whole_hours_until_at"].max())
    from_ms, to_ms = epoch_ms(start), epoch_ms(end)
    scope = Scope(from_ms=from_ms, to_ms=to_ms, bucket_ms=bucket_ms(to_ms - from_ms), **wanted)
    return View(rows.limited(scope), start, end, now, as_of, mode, problem, (begin, until))


def latest(shown: View) -> Scope:
    """Return the scope of a view over the latest range, as pages begin with, whatever is shown."""
    is_moving = shown.mode in MOVING
    start, end, _ = _window(settings().ui.range, "now", shown.now, is_moving=is_moving)
    start, end = of_data(start, end, *extent_of(shown.scope.cluster))
    return replace(shown.scope, from_ms=epoch_ms(start), to_ms=epoch_ms(end), bucket_ms=None)


def week_of(shown: View) -> View:
    """Return a view of the last week, Monday to Sunday on the page's clock, by the end of one."""
    first, as_of = extent_of(shown.scope.cluster)
    week = last_week(time_zone.local(shown.end), time_zone.local(first))
    begin, until = (at.astimezone(UTC).replace(tzinfo=None) for at in week)
    start, end = of_data(begin, until, first, as_of)
    scope = replace(shown.scope, from_ms=epoch_ms(start), to_ms=epoch_ms(end))
    asked = time_zone.iso(start), time_zone.iso(end)
    return replace(shown, scope=scope, start=start, end=end, asked=asked)


def extent_of(cluster: str | None) -> tuple[datetime, datetime]:
    """Return the first and the last moment of the evidence for a cluster; of all where none is."""
    clusters = marts.clusters()
    of_it = clusters.filter(cluster=cluster or "")
    return _extent(clusters if of_it.is_empty() else of_it)


def _extent(clusters: pl.DataFrame) -> tuple[datetime, datetime]:
    """Return the first and the last moment of the evidence for these clusters."""
    return cast(
        "tuple[datetime, datetime]", (clusters["first_at"].min(), clusters["as_of_at"].max())
    )


def required_view(default_range: str | None = None) -> View:
    """Return what the URL asks for; a page without data ends here, main.py shows the first run."""
    shown = view(default_range)
    if shown is None:
        st.stop()
    return shown


def show(default_range: str | None = None, *, is_week: bool = False) -> View | None:
    """Draw the bar and return the view, or its week; None where the database holds nothing yet."""
    shown = view(default_range)
    if shown is None:
        return None
    shown = week_of(shown) if is_week else shown
    _watch(time_picker.refresh(), marts.state())
    if not wall.is_on():
        with st.container(key="scope"):
            with st.container(key=f"scope_{_fold()}"):
                _filters(shown)
            _unfold(len(shown.filters))
    _status(shown)
    for problem in filter(None, (shown.problem, _zone_problem())):
        st.warning(theme.markdown_text(problem), icon=":material/schedule:")
    return shown


def _fold() -> str:
    return "unfolded" if st.session_state.get(UNFOLDED) else "folded"


def _unfold(number: int) -> None:
    """Draw the button that shows or hides the filters; only a phone has it (`main.py`)."""
    is_folded = _fold() == "folded"
    count = f" ({number} set)" if number else ""
    st.button(
        f"Filters{count}" if is_folded else "Hide the filters",
        key="scope_more",
        icon=":material/filter_alt:",
        on_click=lambda: st.session_state.update({UNFOLDED: is_folded}),
        type="tertiary",
    )


def _filters(shown: View) -> None:
    columns = st.columns([1.1, 1.1, 1.1, 1.3, 2.1], vertical_alignment="bottom")
    values = marts.scope_values(shown.scope)
    clusters = marts.clusters()["cluster"].to_list()
    with columns[0]:
        names = {name: theme.printable(name) for name in clusters}
        choice("cluster", "Cluster", names, "All clusters", is_named=False)
    for column, kind in zip(columns[1:4], FILTERS[1:], strict=True):
        with column:
            options = options_of(values, kind, st.query_params.get(kind))
            help_ = left_out(values, kind)
            choice(kind, kind.title(), options, f"All {kind}s", help=help_, is_named=False)
    with columns[4]:
        time_picker.draw(shown, go)


def options_of(values: pl.DataFrame, kind: str, wanted: str | None = None) -> dict[str, str]:
    """Return what a filter offers, as it is shown; what is called alike names its cluster.

    Of very many values those with the most GPU time, and `wanted`. values: marts.scope_values
    """
    is_alike = pl.col("value").n_unique().over("label") > 1
    named = (
        values.filter(pl.col("kind") == kind)
        .with_columns(
            pl.when(is_alike).then(pl.format("{} ({})", "label", "cluster")).otherwise("label")
        )
        .with_row_index("place")
        .filter((pl.col("place") < CHOICES_MAX) | (pl.col("value") == (wanted or "")))
    )
    return {
        value: theme.printable(label or value)
        for value, label in named.select("value", "label").iter_rows()
    }


def left_out(values: pl.DataFrame, kind: str) -> str | None:
    """Return how many values a filter does not offer; None where it offers all."""
    number = values.filter(pl.col("kind") == kind)["value"].n_unique()
    if number <= CHOICES_MAX:
        return None
    return f"The {CHOICES_MAX:,} of {number:,} with the most GPU time; the URL accepts any."


def clear_filters() -> None:
    """Show everything in the window; for a button's `on_click`."""
    go(dict.fromkeys(FILTERS))


def jump_to_data() -> None:
    """Show the latest data; for a button's `on_click`."""
    go({"from": None, "to": None})


def go(changes: dict[str, str | None]) -> None:
    """Change query parameters in one step, which is one entry of the browser's history."""
    now: dict[str, Any] = st.query_params.to_dict()
    st.query_params.from_dict({k: v for k, v in {**now, **changes}.items() if v})


def choice(
    param: str,
    label: str,
    options: dict[str, str],
    none: str = "All",
    *,
    help: str | None = None,  # noqa: A002 -- Streamlit's word
    is_named: bool = True,
) -> None:
    """Draw a filter; a value of the URL that the window does not have stays and says so.

    is_named: its label stands above it; else readers of the screen alone hear it
    """
    key = f"scope_{param}"
    current = st.query_params.get(param, ALL)
    if current and current not in options:
        name = theme.printable(current.rpartition("/")[2])
        options = {current: f"{name} (no data in range)", **options}
    st.session_state[key] = current

    def changed() -> None:
        others = {name: None for name in CARRIED if param == "cluster" and name != param}
        go({**others, param: st.session_state[key]})

    st.selectbox(
        label,
        [ALL, *options],
        key=key,
        on_change=changed,
        format_func=lambda value: options.get(value, none),
        help=help,
        label_visibility="visible" if is_named else "collapsed",
    )


def switch(
    param: str, label: str, options: dict[str, str], *, of_picks: Mapping[str, str] | None = None
) -> str:
    """Draw the choice between parts of a page, and return the one that the URL names.

    Only the chosen part is evaluated.
    options: the value in the URL and its name; the one shown without a value is ""
    of_picks: parameters of rows that the URL may name instead, each with the part that has them
    """
    key = f"switch_{param}"
    picked = (part for pick, part in (of_picks or {}).items() if pick in st.query_params)
    asked = st.query_params.get(param) or next(picked, "")
    current = asked if asked in options else ""
    st.session_state[key] = current
    st.segmented_control(
        label,
        list(options),
        key=key,
        format_func=lambda value: options[value],
        on_change=lambda: go({param: st.session_state[key] or None}),
        label_visibility="collapsed",
    )
    return current


def _zone_problem() -> str | None:
    asked = time_zone.asked()
    if asked == time_zone.name():
        return None
    return f"{asked!r} is not a known time zone. Times are in {time_zone.DEFAULT}."


def _status(shown: View) -> None:
    """Draw the line under the filters: what kind of data, how fresh, how well covered."""
    scope = shown.scope
    if gpu := st.query_params.get("gpu"):  # of a page that is about one
        scope = replace(scope, gpu_uuid=gpu, node=None, cluster=None, team=None, run=None)
    summary = marts.goodput_summary(scope).row(0, named=True)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.badge(shown.mode, color=MODES[shown.mode])
        fresh = freshness.badges(marts.clusters(), shown)
        _badges((text, colour) for text, colour in fresh if colour != "gray")
        if summary["held_ms"]:
            is_partial = summary["coverage_ratio"] < 0.95
            st.badge(
                f"coverage {units.percent(summary['coverage_ratio'])} of allocated time",
                color="orange" if is_partial else "gray",
                help="Allocated GPU time that evidence classifies; the rest is hatched.",
            )
        key = f"scope_{_fold()}_status"
        with st.container(horizontal=True, gap="small", width="content", key=key):
            if wall.is_on():
                _named(shown)
            else:
                time_picker.zone_toggle(go)
            _badges((text, colour) for text, colour in fresh if colour == "gray")
            st.badge(units.count(summary["gpus"], "GPU"), color="gray")
        if shown.filters and not wall.is_on():
            st.button(
                "Clear filters",
                key="scope_clear",
                on_click=clear_filters,
                type="tertiary",
                icon=":material/close:",
            )


def _badges(found: Iterable[tuple[str, theme.Badge]]) -> None:
    for text, colour in found:
        st.badge(theme.markdown_text(text), color=colour)


def _named(shown: View) -> None:
    """Name the time range and the filters, where no filter is drawn."""
    st.badge(time_zone.window(shown.start, shown.end), color="gray")
    for name, value in shown.filters.items():
        st.badge(f"{name} {theme.markdown_text(value)}", color="gray")


def _watch(every: str, seen: marts.State) -> None:
    """Look every so often whether something was loaded or built, and run the page again then."""

    def look() -> None:
        if marts.state() != seen:
            st.rerun()

    if (seconds := time_picker.REFRESH_S[every]) is not None:
        st.fragment(look, run_every=seconds)()


def _mode(as_of: datetime, wall: datetime) -> str:
    path = str(getattr(current_store(), "path", ""))
    if Path(path).name.startswith("demo-"):
        return "DEMO"
    # an outage does not make a recording of a site that is asked again and again
    return "LIVE" if marts.is_polled() or abs(wall - as_of) < LIVE_WITHIN else "RECORDED"


def _window(
    begin: str, until: str, now: datetime, *, is_moving: bool
) -> tuple[datetime, datetime, str | None]:
    """Return the window asked for, and what was wrong with it."""
    problem = None
    anchor = now.replace(tzinfo=UTC)
    try:
        start = _moment(begin, anchor, is_end=False)
        end = _moment(until, anchor, is_end=True)
        if start >= end:
            problem = (
                "The time range is empty: its start is not before its end. Showing the default."
            )
    except QueryError as error:
        problem = f"{error} Showing the default window."
    if problem is not None:
        start, end = now - timedelta(hours=24), now
    if is_moving and "now" in begin:
        start = in_steps(start, end)
    return start, end, problem


def in_steps(start: datetime, end: datetime) -> datetime:
    """Return a start that stands for some seconds, so that pages and viewers share answers."""
    step_ms = bucket_ms(epoch_ms(end) - epoch_ms(start), STEPS_OF_A_WINDOW)
    start_ms = epoch_ms(start) // step_ms * step_ms
    return utc_at(start_ms)


def _moment(text: str, now: datetime, *, is_end: bool) -> datetime:
    ms = moment_ms(text, now, is_end=is_end, zone=time_zone.zone())
    return utc_at(ms)
