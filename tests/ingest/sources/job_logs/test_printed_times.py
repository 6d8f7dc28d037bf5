"""The time that a logger prints before its text: form, order, half of the day, zone."""

from datetime import datetime
from zoneinfo import ZoneInfo

from tests.tables import gives, refuses

from goodput_ingest.formats.json_text.json_lines import FieldError
from goodput_ingest.formats.timestamps import ZoneNeededError
from goodput_ingest.sources.job_logs.moments import Moments

BERLIN = ZoneInfo("Europe/Berlin")


def last_of(*lines, zone=BERLIN):
    """Return the time of the last line, in UTC."""
    moments = Moments("train.log", zone, None)
    for line in lines:
        at = moments.logged(line)
    return None if at is None else f"{at:%m-%d %H:%M:%S}"


def without_zone(line):
    return last_of(line, zone=None)


test_forms = gives(
    last_of,
    ("2026-08-20 14:00:00,5 x", "08-20 12:00:00"),
    ("2026-08-20,14:00:00 | INFO | x", "08-20 12:00:00"),
    ("INFO 2026-08-20 14:00:00 x", "08-20 12:00:00"),
    ("INFO:2026-08-20 14:00:00,123:x", "08-20 12:00:00"),
    ("scepter.x [INFO] 2026-08-20 14:00:00,123 [File: x.py]  x", "08-20 12:00:00"),
    ("train.py:33 2026-08-20 14:00:00 x", "08-20 12:00:00"),
    ("20.08.2026 14:00:00 x", "08-20 12:00:00"), ("[20-Aug-2026 14:00:00] x", "08-20 12:00:00"),
    ("Thu Aug 20 14:00:00 2026 x", "08-20 12:00:00"),
    ("Aug 20, 2026 2:00:00 PM x", "08-20 12:00:00"), ("1787234400.5 x", "08-20 14:00:00"),
    ("step 1787234400 x", None), ("resumes the run of 2026-08-20 14:00:00", None),
    ("x 3/10 [14:00:00<00:01:00]", None),
)  # fmt: skip
test_zones = gives(
    last_of,
    ("2026-08-20 14:00:00 UTC x", "08-20 14:00:00"),
    ("2026-08-20 14:00:00+01:00 x", "08-20 13:00:00"),
    ("2026-08-20 14:00:00,123 -0500 x", "08-20 19:00:00"),
    ("time=2026-08-20T14:00:00Z level=info x", "08-20 14:00:00"),
    ("[20/Aug/2026:14:00:00 +0000] x", "08-20 14:00:00"),
    ("2026-08-20 14:00:00 CEST x", "08-20 12:00:00"),
    ("2026-10-25 02:30:00 CET x", "10-25 01:30:00"),  # the hour that comes twice
)
test_an_offset_needs_no_zone = gives(without_zone, ("2026-08-20 14:00:00Z x", "08-20 14:00:00"))
test_halves_of_a_day = gives(
    last_of,
    ("2026-08-20 01:59:50 PM x", "08-20 11:59:50"),
    ("2026-08-20 12:00:00 AM x", "08-19 22:00:00"),
    ("08/05/2026 12:00:00 PM x", "08-05 10:00:00"),  # as Python's documentation has it
)
test_order_of_day_and_month = gives(
    last_of,
    ("20/08/2026 14:00:00 x", "08-20 12:00:00"),
    ("08/20/2026 14:00:00 x", "08-20 12:00:00"),
    ("20/08/2026 14:00:00 x", "01/09/2026 14:00:00 x", "09-01 12:00:00"),
    ("08/20/2026 14:00:00 x", "09/01/2026 14:00:00 x", "09-01 12:00:00"),
    ("08/08/2026 14:00:00 x", "08-08 12:00:00"),
    ("08/05/2026 14:00:00 - INFO - x", "08-05 12:00:00"),
)
test_what_a_time_lacks = refuses(
    FieldError, last_of,
    ("05/08/2026 14:00:00 x", "may begin with the day or the month (05/08)"),
    ("2026-08-20 14:00:00 PDT x", "PDT, which is not the zone Europe/Berlin at that time"),
    ("2026-10-25 02:30:00 x", "comes twice"), ("2026-03-29 02:30:00 x", "does not exist"),
    ("30.02.2026 14:00:00 x", "is not a valid date"),
    ("2026-08-20 14:00:00+25:00 x", "is not a valid date"),
)  # fmt: skip
test_a_local_time_needs_a_zone = refuses(
    ZoneNeededError, without_zone,
    ("2026-08-20 14:00:00 x", "--timezone"), ("2026-08-20 14:00:00 PDT x", "--timezone"),
)  # fmt: skip


def test_a_time_is_kept_for_those_without_a_year():
    moments = Moments("train.log", BERLIN, None)
    moments.logged("2026-12-31 23:59:00 UTC x")
    assert moments.logged("Jan  1 01:00:10 x") == datetime(2027, 1, 1, 0, 0, 10)  # noqa: DTZ001 -- UTC
