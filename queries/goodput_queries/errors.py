"""Errors that a user can act on.

GoodputError            a stated failure: one sentence, no traceback, exit code 1
├── StoreError          the database cannot be opened, reached or written
│   ├── MissingExtraError  packages of an optional part are not installed
│   ├── TooMuchDroppedError  pruning would drop more than a tenth without confirmation
│   └── RowsRefusedError  the rows of a batch do not fit their table
├── QueryError          a query that cannot be answered as asked
│   ├── NoEvidenceError there is no evidence in the queried time
│   └── NotPermittedError  a reader who sees some teams only asked for more
├── RuleError           the folder of a rule is not complete
├── BuildError          a view or stage could not be built
│   ├── UnbuiltError    no build has processed the latest load
│   └── UnbalancedError a build whose checks failed was not published
└── IngestError         a source cannot be read at all (single bad rows are rejects, not errors)
    └── UnexpectedError a defect of ours met a file: class, place and message of the exception
"""

import contextlib
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from importlib import metadata
from typing import Final, Self

DISTRIBUTION: Final = "goodput-ledger"  # the name under which all packages are published


class GoodputError(Exception):
    """A stated failure: what failed, where, what was expected, what to do."""


class StoreError(GoodputError):
    """The database cannot be opened, reached or written."""


class MissingExtraError(StoreError):
    """The packages of an optional part, an extra of `pyproject.toml`, are not installed."""

    def __init__(self, what: str, extra: str) -> None:
        """Name what needs the extra, and the command that installs its packages here.

        The packages are named, not the extra: that works from a clone and from a wheel alike.
        """
        super().__init__(f"{what} needs packages that are not installed: {install_command(extra)}")


class TooMuchDroppedError(StoreError):
    """Pruning would drop more than a tenth of a table at once; it needs confirmation."""


class RowsRefusedError(StoreError):
    """The rows of a batch do not fit their table; other batches may."""


class QueryError(GoodputError):
    """A query cannot be answered as asked: unknown view, unknown column, bad SQL, out of time."""


class NoEvidenceError(QueryError):
    """There is no evidence in the queried time."""


class NotPermittedError(QueryError):
    """A reader who sees the rows of some teams only asked for what holds rows of others."""


class PackageError(GoodputError):
    """A part that is a package of its own is not installed, or cannot be imported."""


class RuleError(GoodputError):
    """The folder of a rule of findings lacks something or has something that is not known."""


class BuildError(GoodputError):
    """A view or a stage of the ledger could not be built."""


class UnbuiltError(BuildError):
    """No build has processed the latest load yet."""


class UnbalancedError(BuildError):
    """The checks of a build failed: it was rolled back, and the ledger is that of the build before.

    broken: invariant, number of cases and the first case, a row each; empty in another process.
    sequence: the last load that the build has processed; None where it was refused before.
    """

    broken: Sequence[tuple[str, int, str]] = ()
    sequence: int | None = None

    @classmethod
    def of(cls, broken: Sequence[tuple[str, int, str]], sequence: int | None = None) -> Self:
        """Return the error for the invariants that do not hold."""
        (invariant, n, example), *others = broken
        more = f", and {len(others)} more checks" if others else ""
        error = cls(
            "The ledger is that of the last good build, since the checks of this one failed: "
            f"{n} {invariant}, for example {example}{more}. `goodput findings` lists them; take "
            "the evidence back with `goodput forget FILE`, and report it."
        )
        error.broken, error.sequence = broken, sequence
        return error


class IngestError(GoodputError):
    """A source cannot be read at all: no such file, not this format, a command that failed."""


class UnexpectedError(IngestError):
    """An unexpected exception of a source as a sentence: its class, place and message."""


@contextlib.contextmanager
def stated(kind: type[GoodputError], what: str, then: str = "") -> Iterator[None]:
    """Raise an error with the reason where the system refuses what is done meanwhile."""
    try:
        yield
    except OSError as error:
        raise kind(" ".join([f"{what} ({error.strerror}).", then]).strip()) from error


def install_command(extra: str) -> str:
    """Return the command that installs the packages of an extra into this environment."""
    needed = [
        requirement.partition(";")[0].strip()
        for requirement in metadata.requires(DISTRIBUTION) or ()
        if re.search(rf"extra == ['\"]{extra}['\"]", requirement)
    ]
    return shlex.join([sys.executable, "-m", "pip", "install", *needed])
