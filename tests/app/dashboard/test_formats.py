"""How numbers, names and times are written and read, on the clock of a zone too."""

import math
import re
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from functools import partial
from zoneinfo import ZoneInfo

import numpy as np
import plotly.graph_objects as go
import polars as pl
import pytest
from tests.tables import each, gives, refuses

from goodput_app.cli import output
from goodput_app.dashboard import theme, time_zone
from goodput_app.dashboard.browser_title import browser_title
from goodput_app.dashboard.components import tables
from goodput_app.dashboard.components.runs import run_parts
from goodput_app.dashboard.figures.shown import in_zone
from goodput_app.settings import Settings
from goodput_app.text import units
from goodput_app.time_expressions import moment_ms
from goodput_billing.render.wording import amounts
from goodput_billing.statement.amounts import currency, rows
from goodput_billing.statement.settings import StatementSettings
from goodput_queries.errors import QueryError

test_a_number_has_a_unit_that_fits_and_what_is_not_known_is_never_zero = gives(
    lambda written, amount: written(amount),
    (units.gpu_time, None, "not known"), (units.gpu_time, 0, "0.0 GPU-s"),
    (units.gpu_time, 12_340, "12.3 GPU-s"), (units.gpu_time, 90_000, "1.5 GPU-min"),
    (units.gpu_time, 3_600_000, "1.0 GPU-h"),
    (units.gpu_time, 44_444_160_000_000, "12,345,600.0 GPU-h"),
    (units.cost, None, "no price"), (units.cost, math.nan, "no price"), (units.cost, 0.0, "$0.00"),
    (units.cost, 0.004, "<$0.01"), (units.cost, -3.5, "-$3.50"), (units.cost, 1234.5, "$1,234.50"),
    (units.cost, 1_234_567.8, "$1,234,568"),
    (units.percent, None, "not known"), (units.percent, 0.0, "0.0 %"),
    (units.percent, 0.3204, "32.0 %"), (units.percent, 1.0, "100.0 %"),
    (units.duration, None, "not known"), (units.duration, 0, "0 s"),
    (units.duration, 0.012, "12 ms"), (units.duration, 0.9996, "1.0 s"),
    (units.duration, 4.04, "4.0 s"), (units.duration, 59.96, "1m"), (units.duration, 200, "3m 20s"),
    (units.duration, 8_040, "2h 14m"), (units.duration, 90_000, "1d 1h"),
    (units.duration, -200, "-3m 20s"),
)  # fmt: skip


def test_amounts_beside_a_large_one_have_no_decimals_either():
    row = (32_872.4, 9_263.45, 0.2, None)
    shown = [units.cost(amount, beside=row) for amount in row]
    assert shown == ["$32,872", "$9,263", "<$1", "no price"]
    assert units.cost(9_263.45, beside=(12.0, None)) == "$9,263.45"


START = datetime(2026, 11, 20, 12, 29, 30)  # noqa: DTZ001 -- UTC, as the database has it
END = START + timedelta(minutes=5)

test_texts_of_times_names_and_prices = gives(
    lambda written, *given: written(*given),
    {
        "a moment is UTC and says so": (time_zone.moment, START, "2026-11-20 12:29:30 UTC"),
        "a moment of another zone is UTC": (
            time_zone.moment, START.replace(tzinfo=timezone(timedelta(hours=1))),
            "2026-11-20 11:29:30 UTC",
        ),
        "no moment": (time_zone.moment, None, "not known"),
        "a window of one day names the day once": (
            time_zone.window, START, END, "2026-11-20 12:29:30 - 12:34:30 UTC",
        ),
        "a window of two days": (time_zone.window, START, END + timedelta(days=1),
                                 "2026-11-20 12:29 - 2026-11-21 12:34 UTC"),
        "an age": (units.ago, START - timedelta(minutes=125), START, "2h 5m ago"),
        "an age of nothing": (units.ago, START, START, "just now"),
        "a price from ten on has the decimals of an amount": (units.price, 29.3057, "$29.31"),
        "a name moves nothing": (theme.printable, "a\x1b[31m\nb", "a [31m b"),
        "a name is cut": (partial(theme.printable, limit=10), "x" * 100, "x" * 9 + "…"),
    },
)  # fmt: skip


@each(
    "https://evil.test/x", "HTTP://evil.test", "(www.evil.test)", "ann@evil.test",
    ":material/skull:", ":streamlit:", "a -> b", "a <- b", "a <-> b", "a -- b", "a >= b",
)  # fmt: skip
def test_markdown_gets_nothing_that_a_page_looks_for_in_the_finished_text(text):
    """The patterns of the page's scripts (Streamlit 1.67), which do not see the escapes."""
    finished = theme.markdown_text(text).replace("\\", "")

    assert finished.replace(theme.WORD_JOINER, "") == text
    assert not re.search(
        r"https?://|www(?=\.)|[-.\w+]@[-\w]|:(material|streamlit)|(^|\s)(<->|->|<-|--|>=)(\s|$)",
        finished,
        re.IGNORECASE,
    )
    for name in ("ann@node-3", "train--v2", "llama/70b", "9:30", "www2"):
        assert theme.WORD_JOINER not in theme.markdown_text(name), "an ordinary name stays"


test_the_title_of_a_page = gives(
    browser_title,
    ("Overview", {}, "Overview · Goodput"),
    ("Run", {"run": "lab/main"}, "Run main · Goodput"),
    ("Nodes", {"node": "h100-17"}, "Nodes h100-17 · Goodput"),
    ("Nodes", {}, "Nodes · Goodput"),
    ("Fleet", {"node": "h100-17"}, "Fleet · Goodput"),  # a filter, not what the page is of
    ("Run", {"run": "lab/" + "x" * 80}, f"Run {'x' * 60} · Goodput"),
    ("Run", {"run": "lab/a\x1b\n\u202eb"}, "Run ab · Goodput"),
)

test_a_name_comes_before_a_number = gives(
    lambda run_id, name: run_parts.names({"run_id": run_id, "job_name": name}),
    ("1037", "thermal-throttle-d3", ("thermal-throttle-d3", "1037")),
    ("1037", None, ("1037", None)),
    ("llm-pretrain", "sweep", ("llm-pretrain", "sweep")),
)


def ends(**hours):
    """Return a row of a forecast: its ends in hours after noon, 10 USD an hour."""
    noon = datetime(2026, 11, 20, 12)  # noqa: DTZ001 -- UTC
    row = {"progress_ratio": 0.41, "done_steps": 410, "planned_steps": 1000}
    for end in ("expected", "earliest", "low", "high"):
        hour = hours.get(end)
        row[f"{end}_end_at"] = None if hour is None else noon + timedelta(hours=hour)
        row[f"{end}_rest_cost"] = None if hour is None else 10.0 * hour
    return row


STEP_410 = "Step 410 of 1,000 (41.0 %)."
AT_PACE = (
    f"{STEP_410} At the pace of its last day it ends on 2026-11-20 20:00:00 UTC for another $80.00"
)
test_how_far_a_run_is = gives(
    lambda hours: run_parts.forecast_text(ends(**hours)),
    ({}, STEP_410),
    ({"expected": 8}, f"{AT_PACE}."),
    ({"expected": 8, "low": 7, "high": 10},
     f"{AT_PACE}, with 95 % probability after 2026-11-20 19:00:00 UTC and before "
     "2026-11-20 22:00:00 UTC for $70.00 to $100.00."),
    ({"expected": 8, "low": 7},
     f"{AT_PACE}, with 95 % probability after 2026-11-20 19:00:00 UTC, with no latest time: its "
     "hours are too unlike each other."),
)  # fmt: skip

BERLIN = "Europe/Berlin"
AUTUMN = datetime(2026, 10, 25)  # noqa: DTZ001 -- UTC; the clock of Berlin goes back at 01:00
SPRING = datetime(2026, 3, 29)  # noqa: DTZ001 -- and forward at 01:00
NOON = datetime(2026, 11, 20, 12)  # noqa: DTZ001


@pytest.fixture
def in_berlin(monkeypatch):
    monkeypatch.setattr(time_zone, "name", lambda: BERLIN)


@pytest.mark.usefixtures("in_berlin")
def test_a_moment_names_its_offset_by_which_the_hour_that_comes_twice_is_distinguished():
    assert time_zone.moment(NOON) == "2026-11-20 13:00:00 UTC+01:00"
    assert time_zone.moment(NOON.replace(tzinfo=UTC)) == time_zone.moment(NOON)
    early, late = AUTUMN + timedelta(minutes=30), AUTUMN + timedelta(minutes=90)
    same = "2026-10-25 02:30 UTC+02:00 - 2026-10-25 02:30 UTC+01:00"
    assert time_zone.window(early, late) == same
    assert time_zone.hours([AUTUMN + timedelta(hours=hour) for hour in range(3)]) == [
        "10-25 02:00 UTC+02:00", "10-25 02:00 UTC+01:00", "10-25 03:00",
    ]  # fmt: skip


@pytest.mark.parametrize(("day", "hours"), [(AUTUMN, 25), (SPRING, 23), (NOON, 24)])
def test_a_day_of_the_zone_is_as_long_as_its_clock_makes_it(day, hours):
    now, zone = day.replace(hour=12, tzinfo=UTC), ZoneInfo(BERLIN)
    start, end = (moment_ms("now/d", now, is_end=e, zone=zone) for e in (False, True))
    assert (end - start) / 3_600_000 == hours


def test_steps_in_hours_elapse_and_steps_in_days_follow_the_clock():
    now, zone = datetime(2026, 10, 25, 12, tzinfo=UTC), ZoneInfo(BERLIN)
    at = {t: moment_ms(t, now, zone=zone) / 3_600_000 for t in ("now", "now-24h", "now-1d")}
    assert at["now"] - at["now-24h"] == 24
    assert at["now"] - at["now-1d"] == 25
    tokyo = NOW.astimezone(timezone(timedelta(hours=9)))
    assert moment_ms("now/d", tokyo) == moment_ms("now/d", NOW)


@pytest.mark.usefixtures("in_berlin")
def test_a_column_of_times_stays_utc_and_is_shown_in_the_zone():
    later = AUTUMN + timedelta(hours=2)
    frame = pl.DataFrame({"start_at": [NOON, None], "end_at": [AUTUMN, later]})
    shown, config = tables.shaped(frame, {"start_at": "Start", "end_at": "End"})
    assert shown.schema["start_at"] == pl.Datetime("us", "UTC")
    assert shown["start_at"][0] == NOON.replace(tzinfo=UTC)
    assert config["start_at"]["label"] == "Start (Europe/Berlin)"
    assert config["start_at"]["type_config"]["timezone"] == BERLIN
    assert config["start_at"]["type_config"]["format"] == "YYYY-MM-DD HH:mm:ss"
    assert config["end_at"]["type_config"]["format"] == "YYYY-MM-DD HH:mm:ss Z"


def figure(end):
    """Give three hours that end then, as our figures have them: dates, epochs, bars, marks."""
    start = end - timedelta(hours=3)
    drawn = go.Figure()
    drawn.add_scatter(x=[start, end], y=[1, 2], hovertemplate="%{x|%H:%M:%S} UTC<extra></extra>")
    drawn.add_scatter(x=np.array([start.timestamp() * 1000]), y=[1])
    drawn.add_bar(base=[start], x=[5_000.0], y=["lane"], orientation="h")
    drawn.add_heatmap(x=np.array([start], dtype="datetime64[ms]"), y=["row"], z=[[1]])
    drawn.add_vline(x=start)
    return drawn.update_xaxes(range=[start, end], type="date", title_text="UTC")


def test_a_figure_is_drawn_on_the_clock_of_the_zone_with_one_offset_where_it_changes():
    start, hour = NOON - timedelta(hours=3), timedelta(hours=1)
    shown = in_zone(figure(NOON), BERLIN)
    line, epochs, bar, heatmap = shown.data
    assert list(line.x) == [start + hour, NOON + hour]
    assert line.hovertemplate == "%{x|%H:%M:%S} UTC+01:00<extra></extra>"
    assert epochs.x[0] == (start + hour).timestamp() * 1000
    assert (bar.base[0], bar.x[0]) == (start + hour, 5_000.0)
    assert heatmap.x[0] == np.datetime64(start + hour)
    assert shown.layout.shapes[0].x0 == start + hour
    assert tuple(shown.layout.xaxis.range) == (start + hour, NOON + hour)
    assert shown.layout.xaxis.title.text == "Europe/Berlin (UTC+01:00)"
    end = AUTUMN + 2 * hour
    axis = in_zone(figure(end), BERLIN).layout.xaxis
    assert tuple(axis.range) == (end - 2 * hour, end + hour)
    assert axis.title.text == "Europe/Berlin, all at UTC+01:00: its clock changed in this range"


@pytest.fixture
def site(monkeypatch):
    """Give what sets the currency of the site."""

    def use(code):
        found = Settings(statement=StatementSettings(currency=code))
        for module in (units, output):
            monkeypatch.setattr(module, "settings", lambda: found)

    return use


@each(
    ("USD", "$1,234.50", "<$0.01", "$2.1200"),
    ("EUR", "€1,234.50", "<€0.01", "€2.1200"),
    ("JPY", "¥1,234", "<¥1", "¥2.12"),
    ("KWD", "KWD\u00a01,234.500", "<KWD\u00a00.001", "KWD\u00a02.12000"),
)
def test_a_screen_writes_amounts_as_the_currency_has_them(site, code, amount, least, price):
    site(code)
    assert units.cost(1234.5) == amount
    assert units.cost(0.0001) == least
    assert units.price(2.12) == price


def test_tables_of_pages_and_commands_name_the_currency_of_amounts_and_prices(site):
    site("JPY")
    frame = pl.DataFrame({"cost": [1234.0], "price_per_gpu_h": [2.0]})
    names = {"cost": "Cost", "price_per_gpu_h": "Price"}

    _, shown = tables.shaped(frame, names, {"price_per_gpu_h": tables.price_column("Price")})

    assert (shown["cost"]["label"], shown["cost"]["type_config"]["format"]) == (
        "Cost (JPY)",
        "%,.0f",
    )
    of_price = shown["price_per_gpu_h"]
    assert (of_price["label"], of_price["type_config"]["format"]) == ("Price (JPY)", "%,.2f")
    shown = output.with_currency(pl.DataFrame({"cost": [1.0], "lost_cost": [2.0], "node": ["a"]}))
    assert shown.columns == ["cost", "lost_cost", "currency", "node"]
    assert output.cell("lost_cost", 1234.4) == "1,234"


def test_a_statement_writes_the_decimals_of_its_currency():
    assert [amounts(code)(Decimal("1234.50")) for code in ("USD", "JPY", "BHD")] == [
        "1,234.50", "1,234", "1,234.500",
    ]  # fmt: skip


def test_amounts_without_hundredths_are_billed_whole_and_add_up():
    exact = pl.DataFrame(
        [dict.fromkeys(("line", "cluster"), "") | {"direct_cost": Decimal("0.40"),
                                                   "idle_share_cost": Decimal(0)}] * 5,
        schema=rows.SCHEMA,
    )  # fmt: skip

    billed = rows.in_cents(exact, smallest=currency.smallest_cents("JPY"))

    assert billed["total_cost"].sum() == 2
    assert all(amount == int(amount) for amount in billed["total_cost"])


NOW = datetime(2026, 3, 31, 14, 45, 30, 500_000, tzinfo=UTC)  # a Tuesday


def shown(text, *, is_end):
    moment = datetime.fromtimestamp(moment_ms(text, NOW, is_end=is_end) / 1000, UTC)
    return moment.isoformat(sep=" ").removesuffix("+00:00")


@each(
    *((text, moment, moment) for text, moment in (
        ("now", "2026-03-31 14:45:30.500000"), ("now-6h", "2026-03-31 08:45:30.500000"),
        ("now-90s", "2026-03-31 14:44:00.500000"), ("now+2d", "2026-04-02 14:45:30.500000"),
        ("now-1M", "2026-02-28 14:45:30.500000"), ("now-1y", "2025-03-31 14:45:30.500000"),
        ("now-1d-6h", "2026-03-30 08:45:30.500000"), ("2026-03-30", "2026-03-30 00:00:00"),
        ("2026-03-30T12:00Z", "2026-03-30 12:00:00"),
        ("2026-03-30T12:00:00.25+02:00", "2026-03-30 10:00:00.250000"),
        (" now ", "2026-03-31 14:45:30.500000"),
    )),
    ("now/d", "2026-03-31 00:00:00", "2026-04-01 00:00:00"),
    ("now-1d/d", "2026-03-30 00:00:00", "2026-03-31 00:00:00"),
    ("now/h", "2026-03-31 14:00:00", "2026-03-31 15:00:00"),
    ("now/m", "2026-03-31 14:45:00", "2026-03-31 14:46:00"),
    ("now/s", "2026-03-31 14:45:30", "2026-03-31 14:45:31"),
    ("now/w", "2026-03-30 00:00:00", "2026-04-06 00:00:00"),
    ("now/M", "2026-03-01 00:00:00", "2026-04-01 00:00:00"),
    ("now-1M/M", "2026-02-01 00:00:00", "2026-03-01 00:00:00"),
    ("now/y", "2026-01-01 00:00:00", "2027-01-01 00:00:00"),
)  # fmt: skip
def test_a_moment_begins_a_window_cut_down_and_ends_one_cut_up(text, begin, end):
    assert (shown(text, is_end=False), shown(text, is_end=True)) == (begin, end)


test_what_is_no_moment_and_a_time_without_an_offset_are_refused = refuses(
    QueryError,
    lambda text: moment_ms(text, NOW),
    *((text, "is not a valid time; expected like")
      for text in ("", "soon", "now-", "now-6", "now-6q", "now/q", "then-6h", "2026-13-01",
                   "2026-02-30", "now-9999y", "now-999999w", "14:00", "1700000000")),
    ("2026-03-30T12:00", "'2026-03-30T12:00' has no offset; write 2026-03-30T12:00Z for UTC, or "
                         "2026-03-30T12:00+01:00."),
)  # fmt: skip
