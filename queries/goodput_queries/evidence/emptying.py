"""Removes all evidence from a database, as if nothing had ever been loaded."""

from goodput_queries.catalog import models
from goodput_queries.storage.database_file import DatabaseFile

KEPT = frozenset({"catalog", "source_status"})  # the schema version, and how live sources are doing


def empty(store: DatabaseFile) -> None:
    """Delete the rows of all tables that no build makes; the next build is a full build."""
    with store.writing() as cursor:
        for layer in models.BASE_LAYERS:
            for model in models.of_layer(layer).values():
                if model.name not in KEPT:
                    cursor.execute(f"delete from {model.qualified_name}")
        for model in models.build_order():
            if model.materialised == "hourly":
                cursor.execute(f"delete from {model.qualified_name}")
