"""`goodput bundle`: evidence of a time range or a run as one file for somebody else."""

from datetime import datetime
from pathlib import Path

import click
import polars as pl

from goodput_app.cli.database import built
from goodput_app.cli.options import answer_options
from goodput_ingest.bundle import write as bundles
from goodput_ingest.bundle.cut import EVER, Cut, cut_of_run
from goodput_ingest.bundle.pseudonyms import Pseudonyms
from goodput_queries.errors import GoodputError, stated
from goodput_queries.names import resolved
from goodput_queries.scope import Scope, utc_at


@click.command()
@click.argument("target", type=click.Path(path_type=Path), metavar="FILE.zip")
@click.option(
    "--pseudonyms",
    "has_pseudonyms",
    is_flag=True,
    help="Replace names of people, accounts, jobs, nodes, clusters and GPUs.",
)
@answer_options
def bundle(*, target: Path, has_pseudonyms: bool, db: str, scope: Scope) -> pl.DataFrame:
    """Write the evidence of a time range or a run to one file.

    `goodput replay` and `goodput ingest auto` read it. Of a run: the evidence of its nodes during
    its life. The other filters do not apply.
    """
    with built(db) as store:
        scope = resolved(store, scope)
        if scope.run is not None:
            cut = cut_of_run(store, scope.run)
        else:
            cut = Cut(_at(scope.from_ms, EVER[0]), _at(scope.to_ms, EVER[1]))
        with stated(GoodputError, f"{target}: cannot be written"):
            written = bundles.write(store, cut, target, Pseudonyms() if has_pseudonyms else None)
    return pl.DataFrame({"table": list(written), "rows": list(written.values())})


def _at(ms: int | None, otherwise: datetime) -> datetime:
    return otherwise if ms is None else utc_at(ms)
