"""`goodput demo`: the dashboard on recorded sample data."""

import os
from pathlib import Path

import click

from goodput_app.cli import serve
from goodput_app.cli.database import progress
from goodput_app.settings import FILE_VARIABLE, settings, settings_file
from goodput_ingest.live.config import Collector
from goodput_queries.remote import find_server
from goodput_synthetic.demo import FLEET_GPUS, demo_database, live_demo, sample_settings


@click.command()
@click.option(
    "--port", type=click.IntRange(0, 65535), help="Port; default: 8501, or the next free one."
)
@click.option(
    "--address",
    default=lambda: settings().serve.address,
    help="Address to listen on; default: 127.0.0.1.",
)
@serve.insecure_option
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the demo database; default: the user's cache folder.",
)
@click.option(
    "--gpus",
    type=click.IntRange(min=0),
    default=FLEET_GPUS,
    show_default=True,
    help="GPUs of the synthetic fleet; 0: only the recorded session.",
)
@click.option(
    "--live",
    "is_live",
    is_flag=True,
    help="Run the clock of the synthetic fleet: its history ends now, new evidence arrives.",
)
def demo(
    *, port: int | None, address: str, is_insecure: bool, folder: Path | None, gpus: int,
    is_live: bool,
) -> None:  # fmt: skip
    """Serve the dashboard on recorded sample data."""
    serve.refuse_strangers(address, is_insecure=is_insecure)
    if not os.environ.get(FILE_VARIABLE) and not settings_file().exists():
        os.environ[FILE_VARIABLE] = str(sample_settings())
        settings.cache_clear()
    sources: list[Collector] = []
    with progress() as on_progress:
        if is_live:
            path, sources = live_demo(folder, gpus=gpus, on_progress=on_progress)
        else:
            path = demo_database(folder, gpus=gpus, on_progress=on_progress)
    if (running := find_server(path)) is not None:
        running.close()
        click.echo(running.url)
        return
    serve.serve_at(path, port, address, sources)
