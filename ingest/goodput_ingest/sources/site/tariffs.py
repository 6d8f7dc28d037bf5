"""What electricity costs a site, by hour of the day, and what its rooms and servers add to a GPU's.

    cluster,zone,from_hour,to_hour,price_per_kwh,pue,server_ratio,valid_from,valid_to,note
    east,America/New_York,22,6,0.08,1.4,1.25,,,night
    east,America/New_York,6,22,0.15,1.4,1.25,,,day

Without hours a row holds all day. `pue` is the energy of the site over that of its computers,
`server_ratio` that of a server over that of its GPUs; an empty one is 1: nothing is added.
`currency` is as in `rates`.
"""

import re
from typing import ClassVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from goodput_ingest.formats import csv_table
from goodput_ingest.formats.parsed import TEXT_MAX_CHARS
from goodput_ingest.sources.site.money import currency, exact, overhead, validity
from goodput_ingest.sources.site.rows import SiteTable


class Tariffs(SiteTable):
    """A file of electricity tariffs."""

    name: ClassVar[str] = "tariffs"
    table = "tariffs"
    columns = (
        *("cluster", "zone", "from_hour", "to_hour", "price_per_kwh", "pue", "server_ratio"),
        *("currency", "valid_from", "valid_to", "note"),
    )
    required = ("price_per_kwh",)

    def row(self, row: dict[str, str], instant: csv_table.Instant) -> dict[str, object]:
        """Return one row; ValueError says what is wrong with it."""
        begin, end = _hour(row, "from_hour", 0, 0, 23), _hour(row, "to_hour", 24, 1, 24)
        if begin == end:
            raise ValueError(
                f"from_hour and to_hour are both {begin}; leave them empty for all day"
            )
        return {
            "cluster": row.get("cluster") or self.options.cluster,
            "zone": self._zone(row.get("zone", ""), is_needed=(begin, end) != (0, 24)),
            "from_hour": begin,
            "to_hour": end,
            "price_per_kwh": exact(row, "price_per_kwh"),
            "pue": overhead(row, "pue"),
            "server_ratio": overhead(row, "server_ratio"),
            "currency": currency(row),
            **validity(row, instant),
            "note": row.get("note", "")[:TEXT_MAX_CHARS] or None,
        }

    def _zone(self, name: str, *, is_needed: bool) -> str:
        if not name and self.options.zone is not None:
            return self.options.zone.key
        if not name and is_needed:
            raise ValueError("hours of the day need a zone, such as Europe/Berlin")
        try:
            return ZoneInfo(name or "UTC").key
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise ValueError(f"there is no time zone {name[:40]!r}") from error


def _hour(row: dict[str, str], column: str, default: int, least: int, most: int) -> int:
    text = row.get(column, "")
    if not text:
        return default
    if not re.fullmatch(r"[0-9]{1,2}", text) or not least <= int(text) <= most:
        raise ValueError(f"{column} {text[:40]!r} is not an hour from {least} to {most}")
    return int(text)
