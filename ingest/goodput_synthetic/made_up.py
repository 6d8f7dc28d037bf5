"""The made-up evidence of the demo, written in a process beside the one that has the database.

It imports no more than that needs: a process of its own does so again.
"""

from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from multiprocessing import get_context
from pathlib import Path

from goodput_synthetic import fleet as fleets
from goodput_synthetic.serving import site

FLEET_SEED = 7
SERVING_HOURS = 24  # the last of them: what the serving engines beside the fleet are made for
INTERVAL_S = 30  # between readings of a GPU


@contextmanager
def being_made_up(
    folder: Path, gpus: int, start: datetime, hours: int
) -> Iterator[Future[list[Path]]]:
    """Yield the folders to be of a fleet of so many GPUs and its serving, while it is written."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as makers:
        yield makers.submit(make_up, folder, gpus, start, hours)


def make_up(folder: Path, gpus: int, start: datetime, hours: int) -> list[Path]:
    """Write a fleet and a node that serves beside it; raises ValueError where it cannot be."""
    world = fleets.imagine(
        gpus=gpus, hours=hours, seed=FLEET_SEED, start=start, interval_s=INTERVAL_S
    )
    fleets.write_known(folder, world, world.total_s)
    serving, end = folder / "serving", start + timedelta(hours=hours)
    site.write(serving, end=end, hours=min(SERVING_HOURS, hours), seed=FLEET_SEED)
    return [folder, serving]
