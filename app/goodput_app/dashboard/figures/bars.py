"""Bars of a few amounts as HTML: a first screen of them needs no chart library.

Pure functions from rows to text; names from the data are escaped. Widths are shares of a bar, so
that they follow the width of the page. `looks/bars.css` is their style sheet.
"""

import html
from collections.abc import Sequence
from dataclasses import dataclass

from goodput_app.dashboard import theme
from goodput_app.text import units

TEXT_CHARS = 300
LABEL_FROM = 0.12  # of the bar: a part has room for its name


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
    return filled(look.colour, look.hatch)


def filled(colour: str, hatch: str) -> str:
    """Return the CSS of a fill with the lines of a Plotly pattern shape."""
    if not hatch:
        return f"background: {colour};"
    angle = {"/": 135, "\\": 45, "-": 0}.get(hatch, 45)
    lines = f"repeating-linear-gradient({angle}deg, rgba(255, 255, 255, 0.45) 0 2px"
    return f"background: {lines}, transparent 2px 7px), {colour};"


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
