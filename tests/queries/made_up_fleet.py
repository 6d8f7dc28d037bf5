"""A made-up fleet of 64 GPUs over six hours, from the generator's files into a database."""

import contextlib
import shutil
from datetime import UTC, datetime

from tests.fleets import plans
from tests.fleets.generate import generate, read_in
from tests.made_once import made_once

from goodput_queries.database import LocalStore

START = datetime(2026, 11, 16, tzinfo=UTC)
EVENTFUL_SEED = 3  # a job of eight ranks reports from all of them


def load(store, folder, seed, plan):
    """Write the files of a fleet into a folder, and load and build them."""
    generate(folder, gpus=64, hours=6, seed=seed, start=START, plan=plan)
    read_in(store, folder)
    store.build()


def eventful(empty, folders):
    """Return the files and the database, to be copied, of a fleet with every kind of loss."""

    def make(path):
        shutil.copyfile(empty, path)
        with contextlib.closing(LocalStore(path, threads=1)) as store:
            load(store, path.parent / "files", EVENTFUL_SEED, plans.eventful)

    path = made_once(folders, "eventful-fleet", make)
    return path.parent / "files", path
