"""The files of a statement: the same statement, the same bytes; whole or not there."""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from goodput_queries.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from goodput_app.reports.statement import Statement

FORMATS = ("csv", "parquet", "html", "pdf", "focus")
LINES_ON_PAGE = 500
LINES_IN_PDF = 60


def write(
    statement: Statement, folder: Path, formats: Sequence[str], focus_version: str = "1.2"
) -> list[Path]:
    """Write a statement in these formats into a folder; return the files in that order.

    Raises StoreError where the folder cannot be written; a file is replaced as a whole.
    """
    makers: dict[str, Callable[[], bytes]] = {
        "csv": lambda: csv(statement),
        "parquet": lambda: parquet(statement),
        "html": lambda: _html(statement),
        "pdf": lambda: _pdf(statement),
        "focus": lambda: _focus(statement, focus_version),
    }
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for form in formats:
            name = f"{'focus' if form == 'focus' else 'statement'}-{statement.day.date}"
            target = folder / f"{name}.{'csv' if form == 'focus' else form}"
            _replace(target, makers[form]())
            written.append(target)
    except OSError as error:
        raise StoreError(
            f"{folder}: the statement cannot be written ({error.strerror})."
        ) from error
    return written


def table(statement: Statement) -> pl.DataFrame:
    """Return the rows of a statement as CSV and Parquet hand them out: see `marts.statement_lines`.

    Besides: day, correction (0, or the number of the correction that added the row), amounts in
    cents that add up across (direct, idle share and electricity make the total) and down.
    """
    return statement.rows.select(
        pl.lit(statement.day.date).alias("day"),
        "correction",
        pl.all().exclude("correction"),
    )


def csv(statement: Statement) -> bytes:
    """Return the rows as CSV; text that a spreadsheet would run gets a `'` before it."""
    texts = pl.selectors.string()
    harmless = table(statement).with_columns(
        pl.when(texts.str.contains(r"^[=+\-@\t\r]")).then("'" + texts).otherwise(texts).name.keep()
    )
    return harmless.write_csv().encode()


def parquet(statement: Statement) -> bytes:
    """Return the rows as Parquet."""
    stream = io.BytesIO()
    table(statement).write_parquet(stream, compression="zstd", compression_level=3)
    return stream.getvalue()


def _html(statement: Statement) -> bytes:
    from goodput_app.reports.page import html  # noqa: PLC0415 -- only who asks draws in templates
    from goodput_app.reports.presentation import present  # noqa: PLC0415

    return html(present(statement, lines=LINES_ON_PAGE))


def _pdf(statement: Statement) -> bytes:
    from goodput_app.reports.pdf import pdf  # noqa: PLC0415 -- the same for ReportLab
    from goodput_app.reports.presentation import present  # noqa: PLC0415

    return pdf(present(statement, lines=LINES_IN_PDF))


def _focus(statement: Statement, version: str) -> bytes:
    from goodput_app.reports.focus import focus  # noqa: PLC0415 -- as above

    return focus(statement, version)


def _replace(target: Path, content: bytes) -> None:
    """Put a file in its place at once: a reader sees the old one or the new one."""
    handle, draft = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        Path(draft).chmod(0o644)
        Path(draft).replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(draft).unlink()
        raise
