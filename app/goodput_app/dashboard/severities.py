"""How a severity of findings looks: one mark, one colour and its word, wherever one is shown.

A page is a red filled octagon, a ticket an amber outlined triangle, a note a slate ring. Colours
alone say nothing: the word stands beside the mark.
"""

from dataclasses import dataclass

import polars as pl
import streamlit as st


@dataclass(frozen=True)
class Look:
    """How a severity looks.

    icon: in Markdown of Streamlit. glyph: in texts, where no icon is drawn; a hexagon is what
    common fonts have nearest to an octagon. ink, paper, line: colours of its badge, the same on
    light and dark pages.
    """

    icon: str
    glyph: str
    ink: str
    paper: str
    line: str


LOOKS = {
    "page": Look(":red[:material/report:]", "\u2b23", "#ffffff", "#b3201f", "#e0574f"),
    "ticket": Look(":orange[:material/warning:]", "\u25b3", "#7a4a00", "#fff5e0", "#cc8514"),
    "note": Look(
        ":gray[:material/radio_button_unchecked:]", "\u25cb", "#3d4853", "#f1f3f6", "#5d6b7a"
    ),
}
_BADGE = (  # the page's filter for HTML takes SVG away
    '<span style="padding: 1px 8px; margin-right: 8px; border-radius: 6px; font-size: 14px; '
    "font-weight: 600; line-height: 1.5; white-space: nowrap; color: {look.ink}; "
    'background: {look.paper}; border: 1.5px solid {look.line};">'
    '<span aria-hidden="true">{look.glyph}</span> {word}</span>'
)


def badge(severity: str) -> None:
    """Draw a severity on a card or beside a title."""
    st.html(badge_html(severity), width="content")


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
