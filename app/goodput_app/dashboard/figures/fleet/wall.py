"""The wall as HTML: a band, three numbers, the map of racks and what is wrong.

Pure functions from rows to text; names from the data are escaped. Lengths are shares of the width
of the screen, so that at 1,920 x 1,080 no text is below 28 px and nothing scrolls.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from goodput_app.dashboard import theme
from goodput_app.dashboard.figures.bars import paint, text_of
from goodput_app.dashboard.figures.fleet.rack_grid import NOT_AVAILABLE
from goodput_app.dashboard.severities import LOOKS, badge_html

WIDTH_VW, HEIGHT_VW = 52.0, 27.0  # that the map has
LARGEST_VW, SMALLEST_VW = 1.5, 0.1  # side of a cell
TITLE_VW = 2.0
# of the band: the worst that is open, that nothing is, or that this is not yet known
PAPERS = {"page": "#b3201f", "ticket": "#a86100", "well": "#1d5c3f", "not known": "#46525f"}


@dataclass(frozen=True)
class Number:
    """One of the three numbers: its value, what it is, and what it is of."""

    value: str
    name: str
    of: str


@dataclass(frozen=True)
class Wrong:
    """An open page or ticket: its severity, what it says, a second line, for how long."""

    severity: str
    said: str
    more: str
    length: str


def page(
    band: Wrong, numbers: Sequence[Number], cells: pl.DataFrame, marks: pl.DataFrame,
    wrong: Sequence[Wrong], rest: str,
) -> str:  # fmt: skip
    """Return the whole wall.

    band: `severity` is one of PAPERS; `more`: whether somebody has it; `length`: of when it is
    cells: `fleet_parts.cells` coloured by group; marks: `fleet_now.marks`; rest: what is not listed
    """
    shown = "".join(
        f"<div><b>{text_of(one.value)}</b><em>{text_of(one.name)}</em>{text_of(one.of)}</div>"
        for one in numbers
    )
    rows = "".join(
        f"<div>{badge_html(one.severity)}<p><b>{text_of(one.said)}</b><br>{text_of(one.more)}</p>"
        f"<b>{text_of(one.length)}</b></div>"
        for one in wrong
    )
    paper = PAPERS[band.severity]
    facts = " · ".join(filter(None, (band.more, band.length)))
    top = f"<b>{text_of(band.said)}</b><span>{text_of(facts)}</span>"
    return (
        f'{theme.look("wall")}<div class="gp-wall">'
        f'<div class="band" style="background: {paper}; color: #fff">'
        f'{top}</div><div class="numbers">{shown}</div><div class="below"><div class="racks">'
        f'{racks(cells, marks)}</div><div class="wrong">{rows}<div><p>{text_of(rest)}</p></div>'
        f'</div></div><div class="legend">{_legend(cells)}</div></div>'
    )


def racks(cells: pl.DataFrame, marks: pl.DataFrame) -> str:
    """Return a block for each rack with a row for each node and a cell for each GPU."""
    side = cell_vw(cells)
    worst = dict(marks.select("node_key", "severity").iter_rows())
    drawn = []
    for (block,), of_block in cells.group_by("block", maintain_order=True):
        nodes = []
        for (line,), of_line in of_block.group_by("line", maintain_order=True):
            squares = "".join(
                f'<i style="width: {side * 0.86:.3f}vw; height: {side * 0.82:.3f}vw; '
                f'margin: {side * 0.07:.3f}vw; {_paint(category, colour)}"></i>'
                for category, colour in of_line.select("category", "colour").iter_rows()
            )
            severity = worst.get(str(line))
            mark = ""
            if severity is not None:
                look = LOOKS[severity]
                mark = f'<u style="color: {look.line}">{look.glyph}</u>'
            nodes.append(f'<div class="node">{squares}{mark}</div>')
        title = f'<div class="title">{text_of(block)}</div>'
        gap = f"margin-right: {1.2 * side:.3f}vw"
        drawn.append(f'<div style="{gap}">{title}{"".join(nodes)}</div>')
    return "".join(drawn)


def cell_vw(cells: pl.DataFrame) -> float:
    """Return the side of a cell with which all racks have room."""
    lines = cells.group_by("block", "line").len("wide")
    blocks = lines.group_by("block").agg(down=pl.len())
    wide, down = max(lines["wide"], default=1), max(blocks["down"], default=1)
    side = LARGEST_VW
    while side > SMALLEST_VW:
        across = max(1, int(WIDTH_VW / ((wide + 1.2) * side)))
        if -(-blocks.height // across) * (down * side + TITLE_VW) <= HEIGHT_VW:
            break
        side -= 0.05
    return side


def _paint(category: str | None, colour: str | None) -> str:
    if category == NOT_AVAILABLE:
        return "border: 2px solid #9aa6b2; box-sizing: border-box;"
    return paint(colour)


def _legend(cells: pl.DataFrame) -> str:
    counts = (
        cells.group_by("category", "label", "colour", maintain_order=True)
        .len()
        .sort("len", descending=True)
    )
    return "".join(
        f'<span><span class="gp-key" style="{_paint(category, colour)}"></span> '
        f"{text_of(label or 'No data')} <b>{number:,}</b></span>"
        for category, label, colour, number in counts.iter_rows()
    )
