"""Prices, tariffs and budgets written on the Cost page: checked and ingested as a file would be."""

import dataclasses
import tempfile
import uuid
from datetime import UTC, datetime
from pathlib import Path

from goodput_app.access import audit, rows
from goodput_app.access.current import NotAllowedError
from goodput_app.access.identity import Action
from goodput_app.settings import settings
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.site.budgets import Budgets
from goodput_ingest.sources.site.rates import Rates
from goodput_ingest.sources.site.tariffs import Tariffs
from goodput_queries.database import Store
from goodput_queries.errors import GoodputError
from goodput_queries.evidence.batch import Batch

SOURCES = {source.name: source for source in (Rates, Tariffs, Budgets)}
TEXT_MAX_CHARS = 200_000


def read_in(store: Store, source: str, text: str) -> int:
    """Read the lines of a CSV in, all or none, and return how many rows they gave.

    Raises NotAllowedError for somebody who may not edit prices, GoodputError for a header that is
    not known, for the first line that is wrong, and where there is no line at all.
    """
    if not settings().ui.edit_prices:
        raise NotAllowedError("`edit_prices` under [ui] in goodput.toml is false.")
    with audit.acting(store, Action.EDIT_PRICES, source) as who:
        rows.require_all_teams("prices")
        return _read_in(store, source, text, who)


def _read_in(store: Store, source: str, text: str, who: str) -> int:
    batches = _batches(source, text)
    if rejects := [reject for batch in batches for reject in batch.rejects]:
        more = f" ({len(rejects)} lines are wrong.)" if len(rejects) > 1 else ""
        raise GoodputError(f"{rejects[0].reason}{more} Nothing was imported.")
    given = sum(batch.rows.height for batch in batches)
    if not given:
        raise GoodputError("there is no line below the header.")
    origin = f"Cost page, {who}, {datetime.now(UTC):%Y-%m-%d %H:%M:%S}Z"
    digest = uuid.uuid4().hex  # a price that comes back is not the repeat of a file
    for batch in batches:
        if batch.rows.height:
            store.load(dataclasses.replace(batch, origin=origin, digest=digest))
    return given


def _batches(source: str, text: str) -> list[Batch]:
    if len(text) > TEXT_MAX_CHARS:
        raise GoodputError(f"over {TEXT_MAX_CHARS:,} characters; read them in as a file.")
    with tempfile.TemporaryDirectory(prefix="goodput-prices-") as folder:
        path = Path(folder) / f"{source}.csv"
        path.write_text(text, encoding="utf-8")
        return list(SOURCES[source](path, ReadOptions()).extract())
