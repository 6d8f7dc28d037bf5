"""The banner of a replay: which recording, its clock, and the controls of the clock."""

from datetime import timedelta
from functools import partial

import streamlit as st

from goodput_app.dashboard import theme
from goodput_app.process.replay import current_replay
from goodput_app.process.store import current_store
from goodput_queries.database import LocalStore

SPEEDS = (0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0)
STEP = timedelta(minutes=1)
TICK_S = 1.0
POSITION = "replay_position"


def show() -> None:
    """Draw the banner where this server replays a recording."""
    if current_replay() is not None:
        with st.container(border=True, key="replay"):
            _controls()


@st.fragment(run_every=TICK_S)
def _controls() -> None:
    if (replay := current_replay()) is None:
        return
    clock = replay.clock
    now = clock.now()
    st.session_state[POSITION] = now
    name, back, toggle, forward, speed, position = st.columns(
        [3, 0.7, 0.7, 0.7, 1.2, 4], vertical_alignment="center"
    )
    state = "at the end" if now >= clock.ends_at else "paused" if clock.is_paused else "playing"
    name.markdown(f"**Replay** of {theme.markdown_text(replay.title)}, {state}")
    name.caption(f"{now:%F %T} UTC")
    back.button("", key="replay_back", icon=":material/fast_rewind:", help="One minute back",
                on_click=partial(replay.step, _store(), -STEP))  # fmt: skip
    icon, label, act = (
        ("play_arrow", "Play", clock.play) if clock.is_paused else ("pause", "Pause", clock.pause)
    )
    toggle.button("", key="replay_toggle", icon=f":material/{icon}:", help=label, on_click=act)
    forward.button("", key="replay_forward", icon=":material/fast_forward:",
                   help="One minute forward",
                   on_click=partial(replay.step, _store(), STEP))  # fmt: skip
    st.session_state["replay_speed"] = min(SPEEDS, key=lambda one: abs(one - clock.speed))
    speed.selectbox(
        "Speed",
        SPEEDS,
        key="replay_speed",
        format_func=lambda one: f"{one:g}x",
        label_visibility="collapsed",
        on_change=lambda: clock.set_speed(st.session_state["replay_speed"]),
        help="Recorded seconds per second.",
    )
    position.slider(
        "Position",
        clock.begins_at,
        clock.ends_at,
        key=POSITION,
        step=timedelta(seconds=1)
        if clock.ends_at - clock.begins_at < timedelta(hours=6)
        else timedelta(minutes=1),
        format="MM-DD HH:mm:ss",
        label_visibility="collapsed",
        on_change=lambda: replay.seek(_store(), st.session_state[POSITION].replace(tzinfo=None)),
    )


def _store() -> LocalStore:
    store = current_store()
    assert isinstance(store, LocalStore)  # noqa: S101 -- a server has its database open itself
    return store
