"""`goodput demo`: the dashboard on recorded sample data."""

import os
from pathlib import Path

import click

from goodput_app.cli import serve
from goodput_app.cli.database import progress
from goodput_app.cli.option_table import option
from goodput_app.demo import FLEET_GPUS, demo_database, live_demo, sample_settings
from goodput_app.settings import FILE_VARIABLE, settings, settings_file
from goodput_ingest.live.config import Collector
from goodput_queries.remote import find_server


@click.command()
@option("demo.port", type=click.IntRange(0, 65535))
@option("demo.address", default=lambda: settings().serve.address)
@serve.insecure_option
@option("demo.dir", type=click.Path(path_type=Path, file_okay=False))
@option("demo.gpus", type=click.IntRange(min=0), default=FLEET_GPUS)
@option("demo.live")
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
