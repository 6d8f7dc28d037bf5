"""The engine of Ray: tasks of a build on the workers of a cluster."""

import itertools
import logging
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final

from goodput_lake.tasks.database import PartDatabase, Tables
from goodput_lake.tasks.task import Task
from goodput_queries.errors import BuildError, MissingExtraError, StoreError

try:
    import ray
    from ray import exceptions as ray_errors
except ImportError as error:
    raise MissingExtraError("a build on Ray", "ray") from error

RETRIES: Final = 5  # of a task whose worker died
MEMORY_GB: Final = 2.0  # of a task; DuckDB keeps to it
TASKS_OF_A_WORKER: Final = 2  # under way: one waits, so that no worker does


class RayEngine:
    """Computes tasks on the workers of a Ray cluster, one core and so much memory each."""

    def __init__(
        self,
        address: str | None = None,
        *,
        workers: int | None = None,
        memory_gb: float = MEMORY_GB,
    ) -> None:
        """Connect to a cluster; raises StoreError where there is none.

        address: as `ray.init` takes it, `auto` for the cluster of this host; None: workers on this
        host, which end with the process.
        workers: so many of a cluster of one's own, and tasks at once; None: one a core.
        """
        self.memory_gb = memory_gb
        try:
            ray.init(
                address=address,
                num_cpus=workers if address is None else None,
                include_dashboard=None if address else False,
                log_to_driver=False,
                logging_level=logging.WARNING,
                ignore_reinit_error=True,
            )
        except (ConnectionError, ValueError, RuntimeError, ray_errors.RayError) as error:
            first = str(error).strip().partition("\n")[0]
            raise StoreError(f"Ray at {address or 'this host'}: cannot connect: {first}") from error
        resources: dict[str, float] = ray.cluster_resources()
        self.workers = workers or max(1, int(resources.get("CPU", 1)))
        self._remote = ray.remote(num_cpus=1, max_retries=RETRIES)(compute)

    def compute(self, tasks: Iterable[Task]) -> Iterator[Tables]:
        """Yield the tables of each task as it is done; a task whose worker died is done again."""
        todo = iter(tasks)
        running: list[Any] = []
        try:
            while True:
                places = TASKS_OF_A_WORKER * self.workers - len(running)
                running += [
                    self._remote.remote(task, self.memory_gb)
                    for task in itertools.islice(todo, places)
                ]
                if not running:
                    return
                done, running = ray.wait(running, num_returns=1)
                yield ray.get(done[0])
                del done  # so that Ray forgets the result
        except ray_errors.RayError as error:
            if isinstance(error, BuildError):  # as the task raised it
                raise
            first = str(error).strip().partition("\n")[0]
            raise BuildError(f"a task on Ray failed {RETRIES + 1} times: {first}") from error
        finally:
            for one in running:
                ray.cancel(one, force=True)

    def close(self) -> None:
        """Leave the cluster; workers of one's own end."""
        ray.shutdown()


def compute(task: Task, memory_gb: float) -> Tables:
    """Compute a task on a worker."""
    return _database(memory_gb).compute(task)


@cache
def _database(memory_gb: float) -> PartDatabase:
    """Return the database of this worker, which computes one task at a time."""
    return PartDatabase(threads=1, memory=f"{memory_gb} GB")
