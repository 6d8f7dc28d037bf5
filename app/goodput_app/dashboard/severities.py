"""How a severity of findings looks: one mark, one colour and its word, wherever one is shown.

A page is a red filled octagon, a ticket an amber outlined triangle, a note a slate ring. Colours
alone say nothing: the word stands beside the mark.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
import streamlit as st


@dataclass(frozen=True)
class Look:
    """How a severity looks.

    icon: in Markdown of Streamlit. glyph: in text of tables, where no icon is drawn; a hexagon is
    what common fonts have nearest to an octagon. ink, paper, line: colours of its badge, the same
    on light and dark pages. shape: SVG of 14 px, in the colour of the text.
    """

    icon: str
    glyph: str
    ink: str
    paper: str
    line: str
    shape: str


_OUTLINED = 'fill="none" stroke="currentColor" stroke-width="2"'
LOOKS = {
    "page": Look(
        ":red[:material/report:]", "\u2b23", "#ffffff", "#b3201f", "#e0574f",
        '<polygon points="4.1,0 9.9,0 14,4.1 14,9.9 9.9,14 4.1,14 0,9.9 0,4.1" '
        'fill="currentColor"/>',
    ),
    "ticket": Look(
        ":orange[:material/warning:]", "\u25b3", "#7a4a00", "#fff5e0", "#cc8514",
        f'<polygon points="7,1.5 13,12.5 1,12.5" stroke-linejoin="round" {_OUTLINED}/>',
    ),
    "note": Look(
        ":gray[:material/radio_button_unchecked:]", "\u25cb", "#3d4853", "#f1f3f6", "#5d6b7a",
        f'<circle cx="7" cy="7" r="5" {_OUTLINED}/>',
    ),
}  # fmt: skip
_BADGE = (
    '<span style="display: inline-flex; align-items: center; gap: 5px; padding: 1px 8px; '
    "border-radius: 6px; font-size: 14px; line-height: 1.5; white-space: nowrap; "
    'color: {look.ink}; background: {look.paper}; border: 1.5px solid {look.line};">'
    '<svg width="14" height="14" viewBox="0 0 14 14" aria-hidden="true">{look.shape}</svg>'
    "{word}</span>"
)


def badge(severity: str) -> None:
    """Draw a severity on a card or beside a title."""
    st.html(badge_html(severity))


def badge_html(severity: str) -> str:
    """Return the badge of a severity as HTML."""
    return _BADGE.format(look=LOOKS[severity], word=severity)


def in_text(severity: str) -> str:
    """Return mark and word for the text of a table."""
    return f"{LOOKS[severity].glyph} {severity}"


def marked(findings: pl.DataFrame) -> pl.DataFrame:
    """Return rows of marts.findings with the column `mark`: mark and word of their severity."""
    marks = {one: in_text(one) for one in LOOKS}
    return findings.with_columns(pl.col("severity").replace_strict(marks).alias("mark"))
