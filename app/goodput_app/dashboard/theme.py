"""Colour, label and order of each category, and how text from the data is shown as it is.

One meaning per colour on every page: productive green, free blue, own waste amber, waiting on
others purple, failed red, throttled orange (hatched), not settled grey (hatched). Neighbours of one
family differ in lightness and always carry a label. The keys of STYLES are the `colour` column of
`reference/gpu_second_categories.csv`; a test holds the two in step.
"""

import csv
import html
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

LABEL_MAX_CHARS = 48
WORD_JOINER = "\u2060"  # of no width; a word with it inside is neither an address nor an icon
FOUND_AFTER_ESCAPES = re.compile(
    r"https?:(?=//)|www(?=\.)|@(?=[-\w]+\.)|:(?=material|streamlit)|(?<!\S)[-<>~](?=[-=>])",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Style:
    """How a category is painted; `hatch` is a Plotly pattern shape, empty for solid."""

    colour: str
    family: str
    hatch: str = ""


_FOLDER = files("goodput_app.dashboard")
_FILE = (_FOLDER / "styles.csv").read_text("utf-8")
STYLES = {row.pop("style"): Style(**row) for row in csv.DictReader(_FILE.splitlines())}
UNKNOWN_STYLE = STYLES["unknown"]
CAPACITY_COLOUR = "#8a94a3"
BASELINE_COLOUR = "#8a94a3"
MARK_COLOUR = "#ffffff"
# Streamlit draws text of charts in a grey of 3.8:1. This is what it replaces by the colour of its
# legends, #262730 on a light page and #fafafa on a dark one, when the reader switches, too.
CHART_TEXT = "#000037"
CAPTION_OPACITY = 0.78  # of the text's colour: Streamlit's 0.6 is too faint for small text
HEATMAP_SCALE = "Viridis"  # the middle of Cividis is the grey of no data
LATE_SCALE = ((0, "rgba(142, 63, 209, 0.12)"), (1, "rgba(142, 63, 209, 1)"))  # of ranks
# Lines of one chart, distinguishable for colour-blind people too, on light and on dark.
SERIES_COLOURS = (
    *("#2f8fd0", "#d5862a", "#1f9d77", "#c065a0", "#b3a125", "#7a72c8", "#cc5b45", "#6f8a96"),
)
PEERS_COLOUR = "rgba(138, 148, 163, 0.30)"
LIMIT_COLOUR = "#c2302f"
CHOSEN_LINE = {"width": 3, "color": "#2563eb"}  # through the event that is chosen in a list
FLAGGED_COLOUR, OTHERS_COLOUR = "#c2302f", "#7fa8d1"  # of lines: what a finding names, the rest
HOLDER_COLOURS = ("#47607f", "#5f7590")  # allocations that follow each other

# From what is useful to what is not there: stacks, bars and legends all follow it.
ORDER = (
    *("useful", "productive", "step_unsplit", "exposed_comm", "other_declared"),
    *("slowdowns", "straggler_wait", "throttled", "declared"),
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


@cache
def look(*names: str) -> str:
    """Return style sheets of the folder `looks` as HTML."""
    texts = ((_FOLDER / "looks" / f"{name}.css").read_text("utf-8") for name in names)
    return f"<style>{''.join(texts)}</style>"


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


def printable(text: object, limit: int = LABEL_MAX_CHARS) -> str:
    """Return text from the data with control characters made visible, cut at `limit`."""
    shown = str(text)
    if not shown.isprintable():
        shown = "".join(c if c.isprintable() else " " for c in shown)
    shown = shown.strip()
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
