"""Databases of what was recorded on real hardware."""

import pytest

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions


@pytest.fixture(scope="module")
def ledger_of(module_store):
    """Return what reads recorded files into a database, builds it and returns it."""

    def made(*files, cluster="lab"):
        store = module_store()
        ingest(store, "auto", files, ReadOptions(cluster=cluster))
        store.build()
        return store

    return made
