"""The engines that compute tasks: this process; Ray is in `ray_engine.py`."""

import itertools
import os
import queue
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Final, Protocol

from goodput_lake.tasks.database import PartDatabase, Tables
from goodput_lake.tasks.task import Task
from goodput_queries.ledger_build.lake import OnTask

CORES_OF_A_DATABASE: Final = 4  # more of them leave cores idle between two statements


def ignore(_table: str, _done: int, _all: int) -> None:
    """Show no progress."""


def followed(tables: Iterable[Tables], name: str, count: int, on_task: OnTask) -> Iterator[Tables]:
    """Yield the tables of tasks as they are done, and say so."""
    on_task(name, 0, count)
    for done, found in enumerate(tables, 1):
        on_task(name, done, count)
        yield found


class Engine(Protocol):
    """Computes tasks, in any order."""

    @property
    def workers(self) -> int:
        """Return how many tasks it computes at once."""

    def compute(self, tasks: Iterable[Task]) -> Iterator[Tables]:
        """Yield the tables of each task as it is done; tasks are asked for as workers are free."""

    def close(self) -> None:
        """Give up what it holds."""


class InProcess:
    """Computes tasks in databases in memory of this process."""

    def __init__(self, workers: int | None = None, threads: int | None = None) -> None:
        """Take as many workers as there are cores for, `threads` each."""
        cores = os.cpu_count() or 1
        self.workers = workers or max(1, cores // CORES_OF_A_DATABASE)
        self.threads = threads or max(1, cores // self.workers)

    def close(self) -> None:
        """Hold nothing between builds."""

    def compute(self, tasks: Iterable[Task]) -> Iterator[Tables]:
        """Yield the tables of each task as it is done."""
        free: queue.SimpleQueue[PartDatabase] = queue.SimpleQueue()
        databases = [PartDatabase(threads=self.threads) for _ in range(self.workers)]
        for database in databases:
            free.put(database)

        def one(task: Task) -> Tables:
            database = free.get()
            try:
                return database.compute(task)
            finally:
                free.put(database)

        pool = ThreadPoolExecutor(self.workers)
        try:
            todo = iter(tasks)
            running: set[Future[Tables]] = set()
            while True:
                places = self.workers + 1 - len(running)  # one waits, so that no worker does
                running |= {pool.submit(one, task) for task in itertools.islice(todo, places)}
                if not running:
                    return
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)
            for database in databases:
                database.close()
