"""`goodput replay`: the dashboard on a recording whose clock runs."""

import contextlib
import os
import signal
import sys
import threading
from pathlib import Path

import click

from goodput_app.cli import serve
from goodput_app.cli.database import progress
from goodput_app.cli.options import instant, recording_options, say, zone
from goodput_app.process.replay import use_replay
from goodput_app.replay import replaying
from goodput_app.server.listen import DEFAULT_ADDRESS
from goodput_app.settings import settings
from goodput_ingest.live.config import Collector
from goodput_ingest.replay.clock import SPEED_MAX, SPEED_MIN
from goodput_ingest.run.plugins import use_plugins
from goodput_ingest.source import ReadOptions


@click.command()
@click.argument(
    "paths", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True),
    metavar="PATH...",
)  # fmt: skip
@click.option(
    "--speed",
    type=click.FloatRange(SPEED_MIN, SPEED_MAX),
    default=10.0,
    show_default=True,
    help="Recorded seconds per second.",
)
@click.option("--from", "start", metavar="TIME", help="Where to begin; default: its first moment.")
@recording_options
@click.option(
    "--port", type=click.IntRange(0, 65535), help="Port; default: 8501, or the next free one."
)
@click.option("--address", default=DEFAULT_ADDRESS, hidden=True)
@click.option("--attached", "is_attached", is_flag=True, hidden=True)
def replay(
    *, paths: tuple[Path, ...], speed: float, start: str | None, cluster: str | None,
    timezone: str | None, port: int | None, address: str, is_attached: bool,
) -> None:  # fmt: skip
    """Replay a recording on the dashboard.

    PATH: recorded files in any format that `ingest auto` reads, or one Goodput database. The
    dashboard shows what was known at the moment of its clock, which can be paused and set.
    """
    # --address, --attached: of a dashboard that starts a replay (`replay_process.py`)
    serve.refuse_strangers(address, is_insecure=settings().serve.insecure)
    if is_attached:
        threading.Thread(target=_end_with_input, daemon=True).start()
    use_plugins(settings().plugins.folder)
    options = ReadOptions(cluster, zone(timezone), earliest=settings().ingest.earliest_at)
    with contextlib.ExitStack() as stack:
        with progress() as on_progress:  # the bar ends before the server begins
            made = stack.enter_context(
                replaying(
                    paths, options, speed=speed, start_at=instant(start), on_progress=on_progress
                )
            )
        clock = made.feed.clock
        say(f"{made.feed.title}: {clock.begins_at:%F %T} to {clock.ends_at:%F %T} UTC.")
        use_replay(made.feed)
        stack.callback(use_replay, None)
        serve.serve_at(made.database, port, address, [Collector(made.feed, "replay")])


def _end_with_input() -> None:
    """End this process when its standard input closes: who started it has ended."""
    while sys.stdin.buffer.read(1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
