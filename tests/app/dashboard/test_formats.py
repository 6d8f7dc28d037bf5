"""How numbers, times and names are written, and what is not known."""

import math
import re
from datetime import UTC, datetime, timedelta, timezone

import pytest

from goodput_app.dashboard import theme, time_zone
from goodput_app.dashboard.browser_title import browser_title
from goodput_app.dashboard.components.runs import run_parts
from goodput_app.text import units


@pytest.mark.parametrize(
    ("written", "amount", "text"),
    [
        (units.gpu_time, None, "not known"),
        (units.gpu_time, 0, "0.0 GPU-s"),
        (units.gpu_time, 12_340, "12.3 GPU-s"),
        (units.gpu_time, 90_000, "1.5 GPU-min"),
        (units.gpu_time, 3_600_000, "1.0 GPU-h"),
        (units.gpu_time, 44_444_160_000_000, "12,345,600.0 GPU-h"),
        (units.cost, None, "no price"),
        (units.cost, math.nan, "no price"),
        (units.cost, 0.0, "$0.00"),
        (units.cost, 0.004, "<$0.01"),
        (units.cost, -3.5, "-$3.50"),
        (units.cost, 1234.5, "$1,234.50"),
        (units.cost, 1_234_567.8, "$1,234,568"),
        (units.percent, None, "not known"),
        (units.percent, 0.0, "0.0 %"),
        (units.percent, 0.3204, "32.0 %"),
        (units.percent, 1.0, "100.0 %"),
        (units.duration, None, "not known"),
        (units.duration, 0, "0 s"),
        (units.duration, 0.012, "12 ms"),
        (units.duration, 0.9996, "1.0 s"),
        (units.duration, 4.04, "4.0 s"),
        (units.duration, 59.96, "1m"),
        (units.duration, 200, "3m 20s"),
        (units.duration, 8_040, "2h 14m"),
        (units.duration, 90_000, "1d 1h"),
        (units.duration, -200, "-3m 20s"),
    ],
)
def test_a_number_has_a_unit_that_fits_and_what_is_not_known_is_never_zero(written, amount, text):
    assert written(amount) == text


def test_amounts_beside_a_large_one_have_no_decimals_either():
    row = (32_872.4, 9_263.45, 0.2, None)
    shown = [units.cost(amount, beside=row) for amount in row]
    assert shown == ["$32,872", "$9,263", "<$1", "no price"]
    assert units.cost(9_263.45, beside=(12.0, None)) == "$9,263.45"


def test_a_moment_is_utc_and_says_so():
    assert time_zone.moment(datetime(2026, 11, 20, 12, 29, 30)) == "2026-11-20 12:29:30 UTC"  # noqa: DTZ001 -- as the database has it
    berlin = timezone(timedelta(hours=1))
    assert (
        time_zone.moment(datetime(2026, 11, 20, 13, 0, tzinfo=berlin)) == "2026-11-20 12:00:00 UTC"
    )
    assert time_zone.moment(None) == "not known"


def test_a_window_of_one_day_names_the_day_once():
    start = datetime(2026, 11, 20, 12, 29, 30, tzinfo=UTC)
    end = start + timedelta(minutes=5)
    assert time_zone.window(start, end) == "2026-11-20 12:29:30 - 12:34:30 UTC"
    assert (
        time_zone.window(start, end + timedelta(days=1))
        == "2026-11-20 12:29 - 2026-11-21 12:34 UTC"
    )


def test_age_is_written_in_words():
    now = datetime(2026, 11, 20, tzinfo=UTC)
    assert units.ago(now - timedelta(hours=2, minutes=5), now) == "2h 5m ago"
    assert units.ago(now, now) == "just now"


def test_names_from_the_data_are_cut_and_move_nothing():
    assert theme.printable("a\x1b[31m\nb") == "a [31m b"
    assert theme.printable("x" * 100, limit=10) == "x" * 9 + "…"


@pytest.mark.parametrize(
    "text",
    [
        "https://evil.test/x", "HTTP://evil.test", "(www.evil.test)", "ann@evil.test",
        ":material/skull:", ":streamlit:", "a -> b", "a <- b", "a <-> b", "a -- b", "a >= b",
    ],
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


def test_markdown_gets_an_ordinary_name_as_it_is():
    for name in ("ann@node-3", "train--v2", "llama/70b", "9:30", "www2"):
        assert theme.WORD_JOINER not in theme.markdown_text(name)


@pytest.mark.parametrize(
    ("page", "params", "title"),
    [
        ("Overview", {}, "Overview · Goodput"),
        ("Run", {"run": "lab/main"}, "Run main · Goodput"),
        ("Nodes", {"node": "h100-17"}, "Nodes h100-17 · Goodput"),
        ("Nodes", {}, "Nodes · Goodput"),
        ("Fleet", {"node": "h100-17"}, "Fleet · Goodput"),  # a filter, not what the page is of
        ("Run", {"run": "lab/" + "x" * 80}, f"Run {'x' * 60} · Goodput"),
        ("Run", {"run": "lab/a\x1b\n\u202eb"}, "Run ab · Goodput"),
    ],
)
def test_the_title_of_a_page(page, params, title):
    assert browser_title(page, params) == title


@pytest.mark.parametrize(
    ("run_id", "job_name", "expected"),
    [
        ("1037", "thermal-throttle-d3", ("thermal-throttle-d3", "1037")),
        ("1037", None, ("1037", None)),
        ("llm-pretrain", "sweep", ("llm-pretrain", "sweep")),
    ],
)
def test_a_name_comes_before_a_number(run_id, job_name, expected):
    assert run_parts.names({"run_id": run_id, "job_name": job_name}) == expected
