"""Replay on the Data page: choose a recording, start it, and the way to its pages."""

from collections.abc import Callable
from urllib.parse import urlsplit

import streamlit as st

from goodput_app import replay_process
from goodput_app.access.current import current_identity
from goodput_app.access.identity import Action
from goodput_app.dashboard import recordings, theme
from goodput_app.dashboard.components import wall
from goodput_app.dashboard.components.replay_bar import SPEEDS
from goodput_app.dashboard.components.states import panel
from goodput_app.process.replay import current_replay
from goodput_app.process.store import current_store
from goodput_app.settings import settings
from goodput_queries.errors import GoodputError

LOOK_EVERY_S = 2.0
NO_FOLDER = "To offer recordings of this server, set `folder` under `[replay]` in goodput.toml."


def show() -> None:
    """Draw the replay of this server, and the form that starts one, for who may."""
    identity = current_identity()
    may = identity.may(Action.REPLAY_RECORDING) and identity.teams is None
    if not may or current_replay() is not None or wall.is_on():
        return
    with panel("Replay", "state.ingested", help="A recording as if it happened now."):
        host, scheme = _reached_at()
        if scheme == "https" or settings().access.sign_in == "proxy":
            st.caption(
                "This dashboard is behind a proxy, which does not lead to the port of a replay. "
                "Run `goodput replay PATH --speed 10` on your own machine."
            )
            return
        if replay_process.current() is not None:
            _running(host)
        _form()


def _reached_at() -> tuple[str, str]:
    """Return the host and the scheme by which the browser reaches this server."""
    parts = urlsplit(st.context.url or "")
    host = parts.hostname or "127.0.0.1"
    return f"[{host}]" if ":" in host else host, parts.scheme


@st.fragment(run_every=LOOK_EVERY_S)
def _running(host: str) -> None:
    replay = replay_process.current()
    if replay is None:
        return
    title = theme.markdown_text(replay.title)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if replay.is_ready:
            st.markdown(f"Replay of **{title}**")
            st.link_button(
                "Open the replay", f"http://{host}:{replay.port}/", icon=":material/open_in_new:"
            )
        elif (failure := replay.failure) is not None:
            st.warning(f"{title}: {theme.markdown_text(failure)}", icon=":material/error:")
        else:
            st.caption(f":material/hourglass_top: {title} is being read.")
        st.button("End the replay", key="replay_end", icon=":material/stop:", on_click=_end)


def _form() -> None:
    try:
        known = recordings.in_folder()
    except GoodputError as error:
        known = {}
        st.warning(theme.markdown_text(error), icon=":material/folder_off:")
    with st.form("replay_start", border=False):
        with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
            name = st.selectbox(
                "Recording", list(known)[: recordings.RECORDINGS_MAX], index=None,
                key="replay_recording", width=320, format_func=theme.printable,
                placeholder="in the folder of recordings" if known else "none in the folder",
            )  # fmt: skip
            speed = st.selectbox(
                "Speed", SPEEDS, SPEEDS.index(10.0), key="replay_start_speed", width=120,
                format_func=lambda one: f"{one:g}x", help="Recorded seconds per second.",
            )  # fmt: skip
        uploads = st.file_uploader(
            "Or upload files that `goodput ingest auto` reads", accept_multiple_files=True,
            key="replay_upload",
        )  # fmt: skip
        is_asked = st.form_submit_button("Start", icon=":material/play_arrow:")
    st.caption(
        "It runs in a database of its own, which is removed with it; this one stays as it is. "
        f"A person may upload {settings().replay.uploads_per_hour_mib} MiB an hour. "
        + ("" if settings().replay.folder else NO_FOLDER)
    )
    if not is_asked:
        return
    address = str(st.get_option("server.address") or "127.0.0.1")
    if uploads:
        _act(lambda: recordings.start_uploaded(current_store(), uploads, speed, address))
    elif name is not None:
        _act(lambda: recordings.start(current_store(), name, speed, address))
    else:
        st.warning("Choose a recording, or upload one.", icon=":material/error:")


def _act(act: Callable[[], None]) -> None:
    try:
        act()
    except GoodputError as error:
        st.warning(theme.markdown_text(error), icon=":material/error:")
        return
    st.rerun()


def _end() -> None:
    recordings.end(current_store())
