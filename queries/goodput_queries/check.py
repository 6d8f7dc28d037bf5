"""The invariants of the database, which every build must satisfy."""

import polars as pl

from goodput_queries.catalog import models
from goodput_queries.database import Store

SAMPLE_ROWS = 3
SCHEMA = {"check": pl.String, "what": pl.String, "violations": pl.Int64, "sample": pl.String}


def check(store: Store) -> pl.DataFrame:
    """Run every check; return one row each: check, what it finds, violations, a sample of the rows.

    The SQL checks return offending rows; besides, the grain of every stored table must be unique.
    """
    rows = [
        _run(store, model.name, model.description, f"select * from {model.qualified_name}")
        for model in models.of_layer("checks").values()
    ]
    stored = [
        model
        for layer in models.LAYERS
        if layer != models.TEMP_LAYER
        for model in models.of_layer(layer).values()
        if (layer in models.BASE_LAYERS or model.materialised or model.is_written_by_code)
        and model.grain
        and not model.grain[0].startswith("none")
    ]
    for model in stored:
        keys = ", ".join(model.grain)
        rows.append(
            _run(
                store,
                f"grain of {model.qualified_name}",
                f"rows of {model.qualified_name} that share {keys}",
                f"select {keys}, count(*) as n from {model.qualified_name} "
                "group by all having n > 1",
            )
        )
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _run(store: Store, name: str, what: str, sql: str) -> tuple[str, str, int, str]:
    found = store.read(f"select count(*) as n from ({sql})").item()
    sample = ""
    if found:
        sample = store.read(f"select * from ({sql}) limit {SAMPLE_ROWS}").write_ndjson()
    return name, what, int(found), sample
