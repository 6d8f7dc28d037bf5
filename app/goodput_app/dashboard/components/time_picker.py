"""Time range, time zone and how often a page looks for new data: what the bar says of time."""

from collections.abc import Callable
from datetime import datetime

import streamlit as st

from goodput_app.dashboard import time_zone
from goodput_app.dashboard.components import wall
from goodput_app.dashboard.scope import View
from goodput_app.process.replay import current_replay
from goodput_app.settings import settings
from goodput_app.weekly.like_for_like import Baseline

Go = Callable[[dict[str, str | None]], None]  # changes the link

PRESETS = {
    "5 min": ("now-5m", "now"),
    "15 min": ("now-15m", "now"),
    "1 h": ("now-1h", "now"),
    "6 h": ("now-6h", "now"),
    "24 h": ("now-24h", "now"),
    "7 d": ("now-7d", "now"),
    "30 d": ("now-30d", "now"),
    "Today": ("now/d", "now"),
    "Yesterday": ("now-1d/d", "now-1d/d"),
    "Last week": ("now-1w/w", "now-1w/w"),
    "This month": ("now/M", "now"),
    "Last month": ("now-1M/M", "now-1M/M"),
}
MONTHS = ("This month", "Last month")
AGAINST = "against"
BASELINES = {
    "": "Automatic",
    "window": "Window before",
    "week": "Week before",
    "month": "Month before",
    "none": "None",
}
REFRESH_S = {"off": None, "5s": 5, "30s": 30, "1m": 60, "2m": 120, "5m": 300}
REFRESH_DEFAULT, REFRESH_OF_REPLAY = "30s", "5s"


def draw(shown: View, go: Go) -> None:
    """Draw the button with the time range, which opens all that is to choose."""
    label = time_zone.window(shown.start, shown.end)
    with st.popover(label, icon=":material/schedule:", width="stretch", help="Time range"):
        _range(shown.asked, go)
        st.caption(f"Times are in {time_zone.name()}. `now` is {time_zone.moment(shown.now)}.")
        _against(go)
        _zone(go)
        st.session_state["scope_refresh"] = refresh()
        st.segmented_control(
            "Refresh",
            list(REFRESH_S),
            key="scope_refresh",
            on_change=_refresh_chosen,
            args=(go,),
            help="How often the page checks for new data; it refreshes only when there is some.",
        )
        length = shown.end - shown.start
        with st.container(horizontal=True):
            for name, start in (("Previous", shown.start - length), ("Next", shown.end)):
                times = (start, start + length)
                st.button(name, key=f"scope_{name}", on_click=_frozen, args=(go, *times))
            st.button(
                "Freeze to absolute times",
                key="scope_freeze",
                on_click=_frozen,
                args=(go, shown.start, shown.end),
                help="Keep this exact time range in the link.",
            )
            st.button(
                "Reset",
                key="scope_reset",
                on_click=go,
                args=({"from": None, "to": None},),
                disabled=not {"from", "to"} & st.query_params.keys(),
            )


def zone_toggle(go: Go) -> None:
    """Draw the zone of all times, and switch between UTC and the zone of the browser by a click."""
    here = time_zone.name()
    other = time_zone.of_browser() if here == time_zone.DEFAULT else time_zone.DEFAULT
    if other in (None, here):
        st.badge(f"times in {here}", color="gray")
        return
    st.button(
        f"Times in {here}",
        key="scope_zone_toggle",
        icon=":material/swap_horiz:",
        type="tertiary",
        on_click=go,
        args=({time_zone.PARAM: None if other == time_zone.DEFAULT else other},),
        help=f"Show times in {other}. Other time zones: in the time range.",
    )


def refresh() -> str:
    """Return how often the page looks for new data, as the link says; on a wall it always does."""
    default = _refresh_default()
    asked = st.query_params.get("refresh", default)
    is_asked = asked in REFRESH_S and not (wall.is_on() and REFRESH_S[asked] is None)
    return asked if is_asked else default


def baseline() -> Baseline:
    """Return the earlier window that the link names for comparisons."""
    asked = st.query_params.get(AGAINST, "")
    return Baseline(asked if asked in BASELINES else "", time_zone.zone())


def _against(go: Go) -> None:
    key = "scope_against"
    st.session_state[key] = baseline().name
    st.segmented_control(
        "Compare with",
        list(BASELINES),
        key=key,
        format_func=lambda name: BASELINES[name],
        on_change=lambda: go({AGAINST: st.session_state[key] or None}),
        help="Changes are over the clusters and hours that both windows cover. Automatic: the "
        "week before, or else the window before, on Overview and Report; with a window chosen, "
        "Runs, Nodes, Waste, Cost and Energy show changes, too.",
    )


def _range(asked: tuple[str, str], go: Go) -> None:
    presets("Window", tuple(PRESETS), "scope_preset", go)
    st.session_state["scope_from"], st.session_state["scope_to"] = asked
    with st.form("scope_times", border=False):
        left, right = st.columns(2)
        left.text_input("From", key="scope_from", help="`now-6h`, `now/d`, `2026-11-20T12:30Z`")
        right.text_input("To", key="scope_to", help="Exclusive. `now` is the end of the data.")
        st.form_submit_button("Apply", on_click=_times_given, args=(go,), width="stretch")


def presets(label: str, names: tuple[str, ...], key: str, go: Go) -> tuple[str | None, str | None]:
    """Draw ranges to choose from, of PRESETS; return from and to of the link."""
    asked = st.query_params.get("from"), st.query_params.get("to")
    st.session_state[key] = next((name for name in names if PRESETS[name] == asked), None)
    st.pills(label, names, key=key, on_change=_preset_chosen, args=(key, go))
    return asked


def _zone(go: Go) -> None:
    here = time_zone.name()
    first = (time_zone.DEFAULT, time_zone.of_browser(), settings().statement.zone, here)
    st.session_state["scope_zone"] = here
    st.selectbox(
        "Time zone",
        list(dict.fromkeys([*filter(None, first), *sorted(time_zone.names())])),
        key="scope_zone",
        on_change=_zone_chosen,
        args=(go,),
        help="Of all times, and of days such as `now/d`. Statements keep a zone of their own.",
    )


def _preset_chosen(key: str, go: Go) -> None:
    chosen = PRESETS.get(st.session_state[key] or "", (None, None))
    go({"from": chosen[0], "to": chosen[1]})


def _zone_chosen(go: Go) -> None:
    chosen = st.session_state["scope_zone"]
    go({time_zone.PARAM: None if chosen == time_zone.DEFAULT else chosen})


def _refresh_default() -> str:
    return REFRESH_DEFAULT if current_replay() is None else REFRESH_OF_REPLAY


def _refresh_chosen(go: Go) -> None:
    chosen = st.session_state["scope_refresh"]
    go({"refresh": None if chosen in (None, _refresh_default()) else chosen})


def _times_given(go: Go) -> None:
    go({"from": st.session_state["scope_from"].strip(), "to": st.session_state["scope_to"].strip()})


def _frozen(go: Go, start: datetime, end: datetime) -> None:
    go({"from": time_zone.iso(start), "to": time_zone.iso(end)})
