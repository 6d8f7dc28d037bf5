"""Bars of a few amounts as HTML: a first screen of them needs no chart library.

Pure functions from rows to text; names from the data are escaped. Widths are shares of a bar, so
that they follow the width of the page. `LOOK` is their style sheet.
"""

import html
from collections.abc import Sequence
from dataclasses import dataclass

from goodput_app.dashboard import theme
from goodput_app.text import units

TEXT_CHARS = 300
LABEL_FROM = 0.12  # of the bar: a part has room for its name
LOOK = """<style>
.gp-heading { font-size: 1.02rem; font-weight: 600; }
.gp-heading small { font-weight: 400; font-size: 0.87rem; opacity: 0.85; margin-left: 8px; }
.gp-bar { display: flex; height: 38px; border-radius: 4px; overflow: hidden; gap: 1px; }
.gp-bar > div { display: flex; align-items: center; min-width: 2px; overflow: hidden; }
.gp-bar span { background: #ffffff; color: #1b2333; font-weight: 600; font-size: 0.87rem;
  border-radius: 3px; padding: 1px 7px; margin-left: 7px; white-space: nowrap; }
.gp-key { display: inline-block; width: 11px; height: 11px; border-radius: 2px; }
.gp-steps { display: grid; grid-template-columns: minmax(110px, max-content) 1fr;
  column-gap: 10px; row-gap: 5px; font-size: 0.87rem; align-items: center; }
.gp-steps > div:nth-child(odd) { text-align: right; }
.gp-axis { position: relative; height: 18px; margin-right: 84px; }
.gp-axis > div { position: absolute; top: 0; height: 18px; border-radius: 2px; min-width: 2px; }
.gp-cut > div { mask: linear-gradient(105deg, #000 14px, transparent 14px 17px, #000 17px); }
.gp-axis > span { position: absolute; top: 0; line-height: 18px; padding-left: 6px;
  white-space: nowrap; font-weight: 600; }
</style>"""


@dataclass(frozen=True)
class Part:
    """A part of a bar: its name, its amount in whatever unit all parts have, its look."""

    label: str
    amount: float
    colour: str | None
    hover: str = ""


def paint(colour: str | None) -> str:
    """Return the CSS of a colour key; hatched where the category is."""
    look = theme.style(colour)
    if not look.hatch:
        return f"background: {look.colour};"
    angle = {"/": 135, "\\": 45, "-": 0}.get(look.hatch, 45)
    lines = f"repeating-linear-gradient({angle}deg, rgba(255, 255, 255, 0.45) 0 2px"
    return f"background: {lines}, transparent 2px 7px), {look.colour};"


def stacked(parts: Sequence[Part], name: str) -> str:
    """Return one bar with a part for each amount above zero. name: of the whole, for readers."""
    total = sum(part.amount for part in parts)
    drawn = []
    for part in parts:
        if part.amount <= 0:
            continue
        share = part.amount / total
        label = f"{part.label} {units.percent(share)}"
        text = f"<span>{text_of(label)}</span>" if share >= LABEL_FROM else ""
        style = f"flex: {part.amount / total:.6f} 1 0; {paint(part.colour)}"
        drawn.append(f'<div style="{style}" title="{text_of(part.hover or label)}">{text}</div>')
    said = ", ".join(
        f"{part.label} {units.percent(part.amount / total)}" for part in parts if part.amount > 0
    )
    return f'<div class="gp-bar" role="img" aria-label="{text_of(f"{name}: {said}")}">' + (
        "".join(drawn) + "</div>"
    )


def key(colour: str | None) -> str:
    """Return the mark of a category beside its name."""
    return f'<span class="gp-key" style="{paint(colour)}" aria-hidden="true"></span>'


def steps(first: Part, changes: Sequence[Part], last: Part, shown: Sequence[str]) -> str:
    """Return a waterfall: an amount, what was added and taken off, and what it came to.

    shown: the amounts as text, of all rows in order. The axis begins below the smallest total, so
    that small changes can be seen; a total whose bar is cut there has a torn edge.
    """
    begin, end, levels = axis(first.amount, [change.amount for change in changes])
    span = (end - begin) or 1.0
    rows = [(first, begin, first.amount)]
    for change, level in zip(changes, levels, strict=True):
        rows.append((change, level, level + change.amount))
    rows.append((last, begin, last.amount))
    drawn = []
    for (part, left, right), amount in zip(rows, shown, strict=True):
        cut = " gp-cut" if begin and part in (first, last) else ""
        low, high = (100 * (level - begin) / span for level in sorted((left, right)))
        place = f"left: {low:.3f}%; width: {high - low:.3f}%; {paint(part.colour)}"
        drawn.append(
            f"<div>{text_of(part.label)}</div><div class='gp-axis{cut}'>"
            f'<div style="{place}" title="{text_of(part.hover)}"></div>'
            f'<span style="left: {high:.3f}%">{text_of(amount)}</span></div>'
        )
    return f'<div class="gp-steps">{"".join(drawn)}</div>'


def axis(first: float, changes: Sequence[float]) -> tuple[float, float, list[float]]:
    """Return where the axis begins and ends, and the level at which each change starts."""
    levels = [first]
    for change in changes:
        levels.append(levels[-1] + change)
    low, high = min(levels), max(levels)
    begin = max(0.0, low - (high - low) / 2) if high > low else 0.0
    return begin, high, levels[:-1]


def text_of(text: object) -> str:
    """Return text from the data as HTML shows it literally, also inside of an attribute."""
    return html.escape(theme.printable(text, TEXT_CHARS), quote=True)
