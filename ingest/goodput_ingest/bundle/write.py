"""Writes a bundle: a zip of one Parquet file a table, each of which says which table it is."""

import errno
import io
import zipfile
from pathlib import Path

from goodput_ingest.bundle import cut as cuts
from goodput_ingest.bundle.cut import Cut
from goodput_ingest.bundle.pseudonyms import Pseudonyms
from goodput_ingest.sources.bundle import FORMAT, FORMAT_KEY, README_BEGIN, TABLE_KEY
from goodput_queries.database import Store

README = (
    README_BEGIN
    + """ evidence of {start} to {end} (UTC).
{names}
Open it with `goodput replay FILE`, or add it to a database with `goodput ingest auto FILE`.
"""
)
AS_THEY_ARE = "Names are as they were recorded."
PSEUDONYMS = (
    "Names of people, accounts, jobs, nodes, clusters and GPUs are pseudonyms; texts were searched "
    "for these names, and may name what no column does."
)


def write(
    store: Store, cut: Cut, target: Path, pseudonyms: Pseudonyms | None = None
) -> dict[str, int]:
    """Write the bundle of a cut to a new file; return the rows by table.

    With pseudonyms the tables are read twice: texts are searched for the names of all tables. The
    file gets its name when it is whole. Raises FileExistsError where a file has that name.
    """
    if target.exists():
        raise FileExistsError(errno.EEXIST, "File exists", str(target))
    draft = target.with_name(f"{target.name}.part")
    if pseudonyms is not None:
        for _, rows in cuts.tables(store, cut):
            pseudonyms.note(rows)
    try:
        written = _written(store, cut, draft, pseudonyms)
        draft.rename(target)
    finally:
        draft.unlink(missing_ok=True)
    return written


def _written(store: Store, cut: Cut, draft: Path, pseudonyms: Pseudonyms | None) -> dict[str, int]:
    written = {}
    with zipfile.ZipFile(draft, "w") as archive:
        names = AS_THEY_ARE if pseudonyms is None else PSEUDONYMS
        archive.writestr(
            "README.txt",
            README.format(start=cut.start, end=cut.end, names=names),
        )
        for table, rows in cuts.tables(store, cut):
            shown = rows if pseudonyms is None else pseudonyms.replaced(rows)
            part = io.BytesIO()
            shown.write_parquet(part, metadata={FORMAT_KEY: FORMAT, TABLE_KEY: table})
            archive.writestr(f"{table}.parquet", part.getvalue())
            written[table] = rows.height
    return written
