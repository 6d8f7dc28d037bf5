"""The files of a statement: the same statement, the same bytes; whole or not there."""

import io
from collections.abc import Callable, Sequence
from pathlib import Path

import polars as pl

from goodput_billing.render import atomic
from goodput_billing.render.safe_text import harmless
from goodput_billing.statement.one_account import file_name
from goodput_billing.statement.several_days import SeveralDays
from goodput_billing.statement.statement import Statement
from goodput_queries.errors import GoodputError, StoreError, stated
from goodput_queries.storage.private import for_others

FORMATS = ("csv", "parquet", "html", "pdf", "focus")
LINE_FORMATS = ("csv", "parquet", "focus")
LINES_ON_PAGE = 500
LINES_IN_PDF = 60


def write(
    statement: Statement, folder: Path, formats: Sequence[str], focus_version: str = "1.2"
) -> list[Path]:
    """Write a statement in these formats into a folder; return the files in that order.

    Raises StoreError where the folder cannot be written, GoodputError where ReportLab is missing.
    A file is replaced as a whole.
    """
    name = f"{statement.day.date}{of_whom(statement)}"
    return [save(content(statement, form, focus_version), folder, name, form) for form in formats]


def of_whom(statement: Statement) -> str:
    """Return how a file's name ends: with the account, where the statement is of one."""
    return "" if statement.account is None else f"-{file_name(statement.account)}"


def save(found: bytes, folder: Path, name: str, form: str) -> Path:
    """Write a file of a day or month into a folder, as a whole; raises StoreError."""
    kind, ending = ("focus", "csv") if form == "focus" else ("statement", form)
    target = folder / f"{kind}-{name}.{ending}"
    with stated(StoreError, f"{folder}: the statement cannot be written"):
        with for_others():
            folder.mkdir(parents=True, exist_ok=True)
        atomic.replace(target, found)
    return target


def content(statement: Statement, form: str, focus_version: str = "1.2") -> bytes:
    """Return the file of one of FORMATS; raises GoodputError where ReportLab is missing."""
    makers: dict[str, Callable[[], bytes]] = {
        "csv": lambda: csv(statement),
        "parquet": lambda: parquet(statement),
        "html": lambda: _html(statement),
        "pdf": lambda: _pdf(statement),
        "focus": lambda: _focus(statement, focus_version),
    }
    return makers[form]()


def of_days(found: Sequence[bytes], form: str) -> bytes:
    """Return the files of several days, one of LINE_FORMATS, as one: every line of each."""
    if form == "parquet":
        stream = io.BytesIO()
        lines = pl.concat([pl.read_parquet(file) for file in found], how="vertical_relaxed")
        lines.write_parquet(stream, compression="zstd", compression_level=3)
        return stream.getvalue()
    first, *others = found
    return b"".join([first, *(file.partition(b"\n")[2] for file in others)])  # one header


def page_of_days(several: SeveralDays, form: str) -> bytes:
    """Return the statements of several days as one HTML page or PDF; raises as `content`."""
    return _html(several) if form == "html" else _pdf(several)


def table(statement: Statement) -> pl.DataFrame:
    """Return the rows of a statement as CSV and Parquet hand them out: see `marts.statement_lines`.

    Besides: day, correction (0, or the number of the correction that added the row), amounts in
    cents that add up across (direct, idle share and electricity make the total) and down, their
    currency. definition_version: what `productive_ms` counts. energy_kwh, carbon_kg and
    carbon_known_ratio: see `with_carbon`; measured_ms of gpu_ms is the coverage of the energy.
    account_..: of the account of the row, the same in all its rows, see `with_account_measures`.
    """
    rows = statement.rows
    return rows.select(
        pl.lit(statement.day.date).alias("day"),
        "correction",
        *(name for name in rows.columns if name != "correction"),
        pl.lit(statement.policy.currency).alias("currency"),
        pl.lit(statement.policy.definition_version).alias("definition_version"),
    )


def csv(statement: Statement) -> bytes:
    """Return the rows as CSV; text that a spreadsheet would run gets a `'` before it."""
    return table(statement).with_columns(harmless(pl.selectors.string())).write_csv().encode()


def parquet(statement: Statement) -> bytes:
    """Return the rows as Parquet."""
    stream = io.BytesIO()
    table(statement).write_parquet(stream, compression="zstd", compression_level=3)
    return stream.getvalue()


def _html(of: Statement | SeveralDays) -> bytes:
    from goodput_billing.render.html import html  # noqa: PLC0415 -- only who asks draws in templates
    from goodput_billing.render.presentation import present  # noqa: PLC0415 -- as above

    return html(present(of, lines=LINES_ON_PAGE))


def _pdf(of: Statement | SeveralDays) -> bytes:
    from goodput_billing.render.presentation import present  # noqa: PLC0415 -- as above

    try:
        from goodput_billing.render.pdf import pdf  # noqa: PLC0415 -- the same for ReportLab
    except ImportError as error:
        raise GoodputError(
            f"the PDF cannot be made here ({error}). Install reportlab, or name the formats "
            "without it: --formats csv,parquet,html,focus."
        ) from error

    return pdf(present(of, lines=LINES_IN_PDF))


def _focus(statement: Statement, version: str) -> bytes:
    from goodput_billing.render.focus import focus  # noqa: PLC0415 -- as above

    return focus(statement, version)
