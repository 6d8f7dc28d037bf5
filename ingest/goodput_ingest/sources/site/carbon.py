"""Carbon intensity of a site's electricity over time, and the overhead of its rooms and servers.

    cluster,valid_from,valid_to,g_per_kwh,carbon_free_ratio,pue,server_ratio,note
    east,2027-01-15T08:00:00Z,2027-01-15T09:00:00Z,412,0.35,1.4,1.25,
    east,2027-01-15T09:00:00Z,2027-01-15T10:00:00Z,365.5,0.41,1.4,1.25,

`g_per_kwh` is grams of CO2 equivalent per kWh of electricity. Hours that no row covers have no
intensity. `pue` and `server_ratio` are as in `tariffs`.
"""

from decimal import Decimal
from typing import ClassVar

from goodput_ingest.formats import csv_table
from goodput_ingest.formats.parsed import TEXT_MAX_CHARS
from goodput_ingest.sources.site.money import exact, overhead, validity
from goodput_ingest.sources.site.rows import SiteTable

INTENSITY_MAX_G = 5_000  # per kWh: more than twice that of lignite


class Carbon(SiteTable):
    """A file of carbon intensities."""

    name: ClassVar[str] = "carbon"
    table = "carbon"
    columns = (
        *("cluster", "valid_from", "valid_to", "g_per_kwh", "carbon_free_ratio"),
        *("pue", "server_ratio", "note"),
    )
    required = ("g_per_kwh",)

    def row(self, row: dict[str, str], instant: csv_table.Instant) -> dict[str, object]:
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
