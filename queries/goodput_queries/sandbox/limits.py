"""How much one select of a person may take."""

from dataclasses import dataclass

WORKER_START_S = 5  # CPU seconds of a worker beside those of the statement: start, rows in and out


@dataclass(frozen=True)
class Limits:
    """What a select may take; each limit has a sentence where it is reached.

    timeout_s: from the question to the answer, the views it reads included. memory_mib: of DuckDB
    while it runs. rows_max: of the result; what comes after them is left out and said.
    view_rows_max, view_mib_max: of one view that it reads, within the scope.
    """

    timeout_s: float = 30.0
    memory_mib: int = 512
    threads: int = 2
    rows_max: int = 10_000
    result_max_mib: int = 64
    view_rows_max: int = 2_000_000
    view_mib_max: int = 256
    sql_max_chars: int = 20_000

    @property
    def cpu_s(self) -> int:
        """Return the CPU seconds after which the kernel ends a worker, whoever has forgotten it."""
        return int(self.timeout_s * self.threads) + WORKER_START_S


DEFAULT = Limits()
