"""Moments as logs print them, to naive UTC: local times by the configured zone, never guessed."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from goodput_ingest.formats.json_text.json_lines import EPOCH, EPOCH_S_MAX, FieldError, in_utc
from goodput_ingest.formats.timestamps import ZoneNeededError
from goodput_ingest.sources.job_logs.lines import Line
from goodput_ingest.sources.job_logs.printed_times import (
    EPOCH_S,
    FORMS,
    HAS_CLOCK,
    MONTHS,
    UTC_NAMES,
    ZONE_NAMES,
)

CLOCKS = timedelta(days=1)  # processes of one job, and who reads it out, differ by less
AS_ISO = str.maketrans(",_/", ". -")


class Moments:
    """The times of one log; `last` is the time of the latest line that has one."""

    def __init__(self, origin: str, zone: ZoneInfo | None, observed_at: datetime | None) -> None:
        """Take the file (for messages), the zone of its local times, and when it was written out.

        observed_at: naive UTC; it gives the year to stamps that have none.
        """
        self.origin = origin
        self.zone = zone
        self.observed_at = observed_at
        self.last: datetime | None = None
        self.is_month_first: bool | None = None  # of dates as 05/08/2026; None: not seen yet

    def keep(self, moment: datetime) -> datetime:
        """Keep the time of a line as `last` and return it."""
        self.last = moment
        return moment

    def local(self, text: str) -> datetime:
        """Return a local time `2026-08-20 14:03:11[.,]482` (or with T or _) as naive UTC.

        Raises ZoneNeededError where no zone is configured, FieldError where it is no moment.
        """
        if self.zone is None:
            raise self._no_zone(text)
        try:
            found = datetime.fromisoformat(text.translate(AS_ISO))
        except ValueError:
            raise FieldError(f"{text!r} is not a valid date") from None
        return self.keep(self._utc(found, text))

    def logged(self, text: str) -> datetime | None:
        """Return the moment that a program's logger wrote at the beginning of a line, naive UTC.

        None: none of a known form. Raises as `local` and `without_year` do.
        """
        if HAS_CLOCK.match(text) is None:
            found = EPOCH_S.match(text)
            return None if found is None else self.epoch(float(found["epoch_s"]))
        for form in FORMS:
            if (found := form.match(text)) is not None:
                return self._printed(found.groupdict())
        return None

    def _printed(self, found: dict[str, str | None]) -> datetime:
        """Return the moment of a time that was printed in parts."""
        if "first" in found:
            month, day = self._month_and_day(found)
        else:
            name = found.get("name")
            month = int(found.get("month") or 0) if name is None else MONTHS.find(name) // 3 + 1
            day = int(found["day"] or 0)
        clock = found["clock"] or ""
        if half := found.get("half"):
            hour, _, rest = clock.partition(":")
            clock = f"{int(hour) % 12 + 12 * (half in 'Pp'):02}:{rest}"
        if (year := found.get("year") or (found.get("short") and f"20{found['short']}")) is None:
            return self.without_year(month, day, clock)  # month 0: no month, which fits no year
        text = f"{year}-{month:02}-{day:02} {clock.rjust(8, '0') if clock[1:2] == ':' else clock}"
        return self._in_zone(text, found.get("zone") or "")

    def _month_and_day(self, found: dict[str, str | None]) -> tuple[int, int]:
        """Return month and day of a date as 20/08/2026, in whichever order the log has them."""
        first, second = int(found["first"] or 0), int(found["second"] or 0)
        if found["half"] is not None or second > 12 >= first:
            self.is_month_first = True
        elif first > 12:
            self.is_month_first = False
        if self.is_month_first is None and first != second:
            raise FieldError(
                f"its date may begin with the day or the month ({first:02}/{second:02}), and no "
                "line before it shows which"
            )
        return (first, second) if self.is_month_first else (second, first)

    def _in_zone(self, text: str, zone: str) -> datetime:
        """Return a time with the zone that is printed behind it, naive UTC; '': a local one."""
        if not zone:
            return self.local(text)
        try:
            found = datetime.fromisoformat(text.translate(AS_ISO))
            if zone not in ZONE_NAMES:
                offset = "+00:00" if zone in UTC_NAMES else zone
                return self.keep(in_utc(datetime.fromisoformat(f"{found.isoformat()}{offset}")))
        except ValueError:
            raise FieldError(f"{text + zone!r} is not a valid date") from None
        if self.zone is None:
            raise self._no_zone(f"{text} {zone}")
        for fold in (0, 1):
            if (there := found.replace(tzinfo=self.zone, fold=fold)).tzname() == zone:
                return self.keep(in_utc(there))
        raise FieldError(f"its time is in {zone}, which is not the zone {self.zone} at that time")

    def of(self, line: Line, text: str) -> datetime:
        """Return the local time that a line prints; where its zone is not known, its label's.

        So where the line has whole seconds, and the label a moment within that one.
        """
        if self.zone is None and line.at is not None:
            return line.at
        printed = self.local(text)
        if line.at is not None and not printed.microsecond:
            is_finer = printed <= line.at < printed + timedelta(seconds=1)
            return self.keep(line.at) if is_finer else printed
        return printed

    def without_year(self, month: int, day: int, clock: str) -> datetime:
        """Return a stamp that has no year, by the last time in the log, else by observed_at.

        Raises FieldError where neither is known: then its year is not.
        """
        if self.zone is None:
            raise self._no_zone(f"{month:02}-{day:02} {clock}")
        if self.last is not None:
            # a log is in order: the first year in which the stamp is not before the last time
            years, is_it = range(self.last.year - 1, self.last.year + 2), self._is_after
        elif self.observed_at is not None:
            # it was read out afterwards: the last year in which the stamp lies before that
            years = range(self.observed_at.year + 1, self.observed_at.year - 9, -1)
            is_it = self._is_before
        else:
            raise FieldError(
                f"the stamp {month:02}-{day:02} {clock} has no year, no line before it has one, "
                "and it is not said when the log was read out (--observed-at)"
            )
        last = self.last
        for year in years:
            try:
                found = self.local(f"{year:04}-{month:02}-{day:02} {clock}")
            except FieldError:
                continue  # the 29th of February has its years
            self.last = last
            if is_it(found):
                return self.keep(found)
        raise FieldError(f"the stamp {month:02}-{day:02} {clock} fits no year")

    def _no_zone(self, text: str) -> ZoneNeededError:
        return ZoneNeededError(
            f"{self.origin}: its times are local ({text}) and carry no offset from UTC. Name "
            "their time zone with --timezone, such as Europe/Berlin."
        )

    def _is_after(self, moment: datetime) -> bool:
        return self.last is not None and moment >= self.last - CLOCKS

    def _is_before(self, moment: datetime) -> bool:
        return self.observed_at is not None and moment <= self.observed_at + CLOCKS

    def epoch(self, seconds: float) -> datetime:
        """Return seconds since 1970 as naive UTC; raises FieldError out of range."""
        if not 0 <= seconds < EPOCH_S_MAX:
            raise FieldError("the moment is out of range for seconds since 1970")
        return self.keep(EPOCH + timedelta(microseconds=round(seconds * 1e6)))

    def _utc(self, local: datetime, text: str) -> datetime:
        try:
            if local.tzinfo is not None:
                return in_utc(local)
            first, second = (in_utc(local.replace(tzinfo=self.zone, fold=f)) for f in (0, 1))
        except FieldError as error:
            raise FieldError(f"{text!r} {error}") from None
        if first == second:
            return first
        is_there = first.replace(tzinfo=UTC).astimezone(self.zone).replace(tzinfo=None) == local
        what = "comes twice in" if is_there else "does not exist in"
        raise FieldError(f"local time {text} {what} {self.zone} (clocks change)")
