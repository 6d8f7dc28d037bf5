"""Carbon intensity of a site's electricity over time, and the overhead of its rooms and servers.

    cluster,valid_from,valid_to,g_per_kwh,carbon_free_ratio,pue,server_ratio,note
    east,2027-01-15T08:00:00Z,2027-01-15T09:00:00Z,412,0.35,1.4,1.25,
    east,2027-01-15T09:00:00Z,2027-01-15T10:00:00Z,365.5,0.41,1.4,1.25,

`g_per_kwh` is grams of CO2 equivalent per kWh of electricity. Hours that no row covers have no
intensity. `pue` and `server_ratio` are as in `tariffs`.
"""

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import ClassVar

from goodput_ingest.formats import csv_table, raw_tables
from goodput_ingest.formats.parsed import TEXT_MAX_CHARS, Parsed, frame
from goodput_ingest.source import Batch, RecordedFile
from goodput_ingest.sources.site.money import exact, overhead, validity
from goodput_ingest.sources.site.rows import read_rows

COLUMNS = (
    *("cluster", "valid_from", "valid_to", "g_per_kwh", "carbon_free_ratio"),
    *("pue", "server_ratio", "note"),
)
CARBON = raw_tables.columns("carbon", "source")
INTENSITY_MAX_G = 5_000  # per kWh: more than twice that of lignite


class Carbon(RecordedFile):
    """A file of carbon intensities: CSV whose header names the columns."""

    name: ClassVar[str] = "carbon"

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:  # noqa: ARG004 -- judged by content alone
        """Say whether the header has an intensity and nothing that is not known."""
        names = set(csv_table.header_names(head))
        return "g_per_kwh" in names and names <= set(COLUMNS)

    def extract(self) -> Iterator[Batch]:
        """Yield `raw.carbon`; raises IngestError for an unknown column."""
        read = read_rows(
            self.path, self.options, COLUMNS, ("g_per_kwh",), self.name, self._intensity
        )
        parsed = Parsed("carbon", frame(read.rows, CARBON), read.rejects)
        yield parsed.batch(source=self.name, origin=str(self.path), digest=read.digest)

    def _intensity(self, row: dict[str, str], instant: csv_table.Instant) -> dict[str, object]:
        """Return one row; ValueError says what is wrong with it."""
        intensity = exact(row, "g_per_kwh")
        if intensity > INTENSITY_MAX_G:
            raise ValueError(f"g_per_kwh {row['g_per_kwh'][:40]!r} is more than {INTENSITY_MAX_G}")
        return {
            "cluster": row.get("cluster") or self.options.cluster,
            **validity(row, instant),
            "g_per_kwh": intensity,
            "carbon_free_ratio": _share(row, "carbon_free_ratio"),
            "pue": overhead(row, "pue"),
            "server_ratio": overhead(row, "server_ratio"),
            "note": row.get("note", "")[:TEXT_MAX_CHARS] or None,
        }


def _share(row: dict[str, str], column: str) -> Decimal | None:
    if not row.get(column):
        return None
    share = exact(row, column)
    if share > 1:
        raise ValueError(f"{column} {row[column][:40]!r} is not a share from 0 to 1")
    return share
