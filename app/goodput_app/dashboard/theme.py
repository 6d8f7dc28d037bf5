"""Colour, label and order of each category, the look of the dashboard, and how numbers are written.

One meaning per colour on every page: productive green, free blue, own waste amber, waiting on
others purple, failed red, throttled orange (hatched), not settled grey (hatched). Neighbours of one
family differ in lightness and always carry a label. The keys of STYLES are the `colour` column of
`reference/gpu_second_categories.csv`; a test holds the two in step.
"""

from __future__ import annotations

import html
import math
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from goodput_app.dashboard import time_zone
from goodput_app.settings import settings
from goodput_billing.statement.amounts import currency as currencies

if TYPE_CHECKING:
    from collections.abc import Iterable

MS_PER_GPU_H = 3_600_000
MS_PER_GPU_MIN = 60_000
LABEL_MAX_CHARS = 48
WORD_JOINER = "\u2060"  # of no width; a word with it inside is neither an address nor an icon
FOUND_AFTER_ESCAPES = re.compile(
    r"https?:(?=//)|www(?=\.)|@(?=[-\w]+\.)|:(?=material|streamlit)|(?<!\S)[-<>~](?=[-=>])",
    re.IGNORECASE,
)
WHOLE_FROM = 10_000  # of an amount of money
NOT_KNOWN = "not known"
NOT_MEASURED = "not measured"
NO_PRICE = "no price"


@dataclass(frozen=True)
class Style:
    """How a category is painted; `hatch` is a Plotly pattern shape, empty for solid."""

    colour: str
    family: str
    hatch: str = ""


STYLES: dict[str, Style] = {
    "productive": Style("#159a5c", "productive"),
    "step": Style("#159a5c", "productive", "/"),
    "comm": Style("#2f8f9d", "productive", "-"),
    "other": Style("#6cbf8c", "productive"),
    "free": Style("#5c9cf0", "free"),
    "free_demand": Style("#3d80dc", "free"),
    "planned": Style("#9cc3f4", "free"),
    "stranded": Style("#5590c8", "free"),
    "reserved": Style("#7fb4da", "free"),
    "free_unknown": Style("#8fa6c2", "unsettled", "/"),
    "startup": Style("#c98a12", "own"),
    "restore": Style("#a8730d", "own"),
    "checkpoint": Style("#e0ac3a", "own"),
    "data": Style("#8c6414", "own"),
    "idle_held": Style("#f0c14b", "own"),
    "teardown": Style("#b99a55", "own"),
    "straggler": Style("#6f2da8", "waiting"),
    "gang_wait": Style("#9058c4", "waiting"),
    "suspended": Style("#52237f", "waiting"),
    "lost": Style("#e0574f", "failed"),
    "fault": Style("#c2302f", "failed"),
    "failed_run": Style("#96202a", "failed"),
    "failed": Style("#7d1d3f", "failed"),
    "throttled": Style("#ee6c1b", "throttled", "x"),
    "maintenance": Style("#5d6b7a", "away"),
    "drained": Style("#7b8896", "away"),
    "off": Style("#a3adb8", "away"),
    "at_risk": Style("#93a08c", "unsettled", "\\"),
    "busy": Style("#7f9689", "unsettled", "x"),
    "unknown": Style("#8d9299", "unsettled", "/"),
}
UNKNOWN_STYLE = STYLES["unknown"]
CAPACITY_COLOUR = "#8a94a3"
BASELINE_COLOUR = "#8a94a3"
MARK_COLOUR = "#ffffff"
# Streamlit draws text of charts in a grey of 3.8:1. This is what it replaces by the colour of its
# legends, #262730 on a light page and #fafafa on a dark one, when the reader switches, too.
CHART_TEXT = "#000037"
CAPTION_OPACITY = 0.78  # of the text's colour: Streamlit's 0.6 is too faint for small text
HEATMAP_SCALE = "Cividis"
COUNT_SCALE = "Viridis"  # of counts from 1 on: the middle of Cividis is the grey of no data
# Lines of one chart, distinguishable for colour-blind people too, on light and on dark.
SERIES_COLOURS = (
    *("#2f8fd0", "#d5862a", "#1f9d77", "#c065a0", "#b3a125", "#7a72c8", "#cc5b45", "#6f8a96"),
)
PEERS_COLOUR = "rgba(138, 148, 163, 0.30)"
LIMIT_COLOUR = "#c2302f"
HOLDER_COLOURS = ("#47607f", "#5f7590")  # allocations that follow each other

# From what is useful to what is not there: stacks, bars and legends all follow it.
ORDER = (
    *("useful", "productive", "step_unsplit", "exposed_comm", "declared", "other_declared"),
    *("slowdowns", "straggler_wait", "throttled"),
    *("starting", "gang_wait", "suspended"),
    *("data_stall", "checkpoint_save", "restore", "startup", "teardown", "idle", "idle_held"),
    *("failures", "lost_work", "fault_stall", "failed_without_progress"),
    *("unclassified", "at_risk", "busy_unclassified", "unknown", "unallocated"),
    *("idle_with_demand", "idle_no_demand", "stranded", "planned", "reserved_idle", "free_unknown"),
    *("not_available", "drained", "maintenance", "powered_off", "down"),
)

# Parts of a charge in the order of stacks: column, label, look. They add up to what is paid.
MONEY: dict[str, tuple[str, Style]] = {
    "productive_cost": ("Useful", STYLES["productive"]),
    "other_use_cost": ("Other use", STYLES["other"]),
    "own_waste_cost": ("Team-caused waste", STYLES["checkpoint"]),
    "platform_waste_cost": ("Infrastructure-caused waste", STYLES["fault"]),
    "unsettled_cost": ("Unclassified", STYLES["unknown"]),
    "idle_cost": ("Idle", STYLES["free"]),
    "not_available_cost": ("Not available", STYLES["drained"]),
    "electricity_cost": ("Electricity", Style("#b0895f", "electricity", ".")),
    "credit_cost": ("Credits", Style("#5aa79b", "credit", "\\")),
}

Badge = Literal["red", "orange", "green", "blue", "violet", "gray"]
CONFIDENCE_COLOURS: dict[str, Badge] = {
    "Confirmed": "green",
    "Likely": "orange",
    "Not confirmed": "gray",
}

STREAMLIT_CONFIG: dict[str, Any] = {
    "theme.baseFontSize": 15,
    "theme.baseRadius": "small",
    "theme.headingFontSizes": ["1.7rem", "1.25rem", "1.05rem"],
    "theme.headingFontWeights": [600, 600, 600],
    "theme.showWidgetBorder": True,
    "theme.metricValueFontSize": "1.55rem",
    "theme.metricValueFontWeight": 600,
    "theme.light.primaryColor": "#146c94",
    "theme.light.backgroundColor": "#ffffff",
    "theme.light.secondaryBackgroundColor": "#f2f4f7",
    "theme.light.textColor": "#1b2430",
    "theme.light.borderColor": "#d9dee5",
    "theme.light.dataframeBorderColor": "#e3e7ed",
    "theme.dark.primaryColor": "#4fb3e8",
    "theme.dark.backgroundColor": "#12171e",
    "theme.dark.secondaryBackgroundColor": "#1b222c",
    "theme.dark.textColor": "#e6eaf0",
    "theme.dark.borderColor": "#333d4a",
    "theme.dark.dataframeBorderColor": "#2b3440",
}


def style(colour: str | None) -> Style:
    """Return how a colour key is painted; one that is not ours is unknown, and looks it."""
    return STYLES.get(colour or "", UNKNOWN_STYLE)


def ink(colour: str | None) -> str:
    """Return the colour in which text reads on top of a category: black or white."""
    on_white, on_black = (contrast(style(colour).colour, end) for end in ("#ffffff", "#000000"))
    return "#ffffff" if on_white >= on_black else "#000000"


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours, 1 to 21 (WCAG 2.2, relative luminance)."""
    lights = []
    for paint in (one, other):
        parts = (int(paint[i : i + 2], 16) / 255 for i in (1, 3, 5))
        linear = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
        lights.append(sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True)))
    return (max(lights) + 0.05) / (min(lights) + 0.05)


def rank(category: str) -> int:
    """Return where a category stands in stacks and legends."""
    return ORDER.index(category) if category in ORDER else len(ORDER)


def gpu_time_unit(gpu_ms: float | None) -> tuple[str, int]:
    """Return the unit in which such an amount reads well, and its milliseconds."""
    amount = abs(gpu_ms or 0)
    if amount >= MS_PER_GPU_H:
        return "GPU-h", MS_PER_GPU_H
    if amount >= MS_PER_GPU_MIN:
        return "GPU-min", MS_PER_GPU_MIN
    return "GPU-s", 1000


def gpu_time(gpu_ms: float | None) -> str:
    """Return GPU time with one decimal: `12,345.6 GPU-h`, below one GPU-h in GPU-min or GPU-s."""
    if gpu_ms is None:
        return NOT_KNOWN
    unit, divisor = gpu_time_unit(gpu_ms)
    return f"{gpu_ms / divisor:,.1f} {unit}"


def currency() -> str:
    """Return the code of the currency in which the site writes its prices."""
    return settings().statement.currency


def currency_sign() -> str:
    """Return what stands before an amount."""
    return currencies.sign(currency())


def money_decimals() -> int:
    """Return how many decimals an amount has."""
    return currencies.decimals(currency())


def price(amount: float | None) -> str:
    """Return the price of an hour or a kWh: with two decimals more than an amount."""
    if amount is None or math.isnan(amount):
        return NO_PRICE
    return f"{currency_sign()}{amount:,.{money_decimals() + currencies.PRICE_DECIMALS}f}"


def cost(amount: float | None, *, beside: Iterable[float | None] = ()) -> str:
    """Return money with separators; what has no price says so and is never $0.

    beside: other amounts in the same row of tiles, or chart. One from 10,000 on is written without
    decimals, and so are the others then.
    """
    if amount is None or math.isnan(amount):
        return NO_PRICE
    sign, unit = "-" if amount < 0 else "", currency_sign()
    size = abs(amount)
    largest = max(abs(other) for other in (amount, *beside) if other is not None)
    decimals = 0 if largest >= WHOLE_FROM else money_decimals()
    least = 10.0**-decimals
    if size == 0 or size >= least:
        return f"{sign}{unit}{size:,.{decimals}f}"
    return f"{sign}<{unit}{least:.{decimals}f}"


def percent(ratio: float | None) -> str:
    """Return a ratio as percent with one decimal."""
    return NOT_KNOWN if ratio is None or math.isnan(ratio) else f"{ratio * 100:.1f} %"


def duration(seconds: float | None) -> str:
    """Return a length of time as `2h 14m`, `3m 20s`, `4.0 s`, `12 ms`."""
    if seconds is None or math.isnan(seconds):
        return NOT_KNOWN
    sign, size = ("-", -seconds) if seconds < 0 else ("", seconds)
    if size == 0:
        return "0 s"
    if size < 0.9995:
        return f"{sign}{size * 1000:.0f} ms"
    if size < 59.95:
        return f"{sign}{size:.1f} s"
    whole = round(size)
    for name, length, inner, inner_length in (
        ("d", 86_400, "h", 3600),
        ("h", 3600, "m", 60),
        ("m", 60, "s", 1),
    ):
        if whole >= length:
            rest = whole % length // inner_length
            return f"{sign}{whole // length}{name}" + (f" {rest}{inner}" if rest else "")
    return f"{sign}{whole}.0 s"


def moment(at: datetime | None) -> str:
    """Return an instant (naive UTC, as the database has it) as `2026-11-20 12:29:30 UTC`.

    It is in the time zone of the page.
    """
    if at is None:
        return NOT_KNOWN
    clock = time_zone.local(at)
    return f"{clock:%Y-%m-%d %H:%M:%S} {time_zone.suffix(clock)}"


def window(start: datetime, end: datetime) -> str:
    """Return a span as short as it stays clear; the offset of the page's time zone is printed."""
    first, last = time_zone.local(start), time_zone.local(end)
    zone = time_zone.suffix(last)
    if first.utcoffset() != last.utcoffset():
        begin = f"{first:%Y-%m-%d %H:%M} {time_zone.suffix(first)}"
        return f"{begin} - {last:%Y-%m-%d %H:%M} {zone}"
    if first.date() == last.date():
        return f"{first:%Y-%m-%d %H:%M:%S} - {last:%H:%M:%S} {zone}"
    return f"{first:%Y-%m-%d %H:%M} - {last:%Y-%m-%d %H:%M} {zone}"


def count(number: int, thing: str) -> str:
    """Return `1 gap`, `1,234 gaps`."""
    return f"{number:,} {thing}" + ("" if number == 1 else "s")


def ago(at: datetime, now: datetime) -> str:
    """Return how long ago an instant was."""
    age = now - at
    return "just now" if age < timedelta(seconds=1) else f"{duration(age.total_seconds())} ago"


def size(size_bytes: float) -> str:
    """Return a size of messages as people say it: `256 MiB`."""
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size_bytes >= factor:
            return f"{size_bytes / factor:g} {unit}"
    return f"{size_bytes:g} B"


def printable(text: object, limit: int = LABEL_MAX_CHARS) -> str:
    """Return text from the data with control characters made visible, cut at `limit`."""
    shown = "".join(c if c.isprintable() else " " for c in str(text)).strip()
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def plotly_text(text: object, limit: int = LABEL_MAX_CHARS) -> str:
    """Return text from the data as a Plotly label shows it literally: Plotly renders some HTML."""
    shown = html.escape(printable(text, limit), quote=False)
    return shown.replace("$", "&#36;").replace("%{", "% {")


def markdown_text(text: object, limit: int = 400) -> str:
    """Return text from the data as Markdown shows it literally: no link, image, colour or maths.

    Streamlit's page looks for addresses, icons and arrows once the escapes are gone: an invisible
    character in them keeps it from that.
    """
    shown = FOUND_AFTER_ESCAPES.sub(lambda found: found[0] + WORD_JOINER, printable(text, limit))
    return "".join(f"\\{c}" if c in r"\`*_{}[]()<>#+-.!|$~:^&=" else c for c in shown)
