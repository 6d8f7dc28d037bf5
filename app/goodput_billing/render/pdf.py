"""The statement as a PDF for people who print: A4 across, page numbers, the same tables."""

import io
from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from xml.sax.saxutils import escape

from reportlab.graphics.shapes import Drawing, Rect, String
from reportlab.lib import colors
from reportlab.lib.enums import TA_RIGHT
from reportlab.lib.pagesizes import A4, landscape
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.platypus import (
    BaseDocTemplate,
    CondPageBreak,
    Frame,
    KeepTogether,
    LongTable,
    PageTemplate,
    Paragraph,
    Spacer,
    TableStyle,
)
from reportlab.platypus import Table as Grid

from goodput_billing.render.presentation import USES, Bar, Presentation
from goodput_billing.render.wording import Table, empty_tables_left_out

PAGE = landscape(A4)
MARGIN = 14 * mm
FOOT = 16 * mm
WIDTH = PAGE[0] - 2 * MARGIN
INK, SOFT, LINE, CARD = (colors.HexColor(c) for c in ("#1b2430", "#5d6b7a", "#d9dee5", "#f5f7f9"))
ACCENT, OPEN = colors.HexColor("#146c94"), colors.HexColor("#8a5a00")
FONT, BOLD = "Helvetica", "Helvetica-Bold"
CELL_MAX_CHARS = 160
LABEL_MAX_CHARS = 28
MIN_COLUMN = 9 * mm
ROWS_TOGETHER = 12  # a table of so many rows is not torn by the end of a page

BODY = ParagraphStyle("body", fontName=FONT, fontSize=8.5, leading=11.5, textColor=INK)
NOTE = ParagraphStyle("note", BODY, fontSize=7.5, leading=10, textColor=SOFT, spaceBefore=2)
TITLE = ParagraphStyle("title", BODY, fontName=BOLD, fontSize=17, leading=21)
HEAD = ParagraphStyle("head", BODY, fontName=BOLD, fontSize=11, leading=14, spaceAfter=3)
CELL = ParagraphStyle("cell", BODY, fontSize=7.2, leading=8.8, splitLongWords=1)
NUMBER = ParagraphStyle("number", CELL, alignment=TA_RIGHT)
TOTAL = ParagraphStyle("total", CELL, fontName=BOLD)
NUMBER_TOTAL = ParagraphStyle("number_total", NUMBER, fontName=BOLD)
CELL_HEAD = ParagraphStyle("cell_head", CELL, fontName=BOLD, textColor=SOFT)
NUMBER_HEAD = ParagraphStyle("number_head", CELL_HEAD, alignment=TA_RIGHT)


def pdf(page: Presentation) -> bytes:
    """Return the document; the same statement gives the same bytes.

    Its fonts know Western European letters; others show as `?` and are whole in the other files.
    """
    stream = io.BytesIO()
    document = BaseDocTemplate(
        stream, pagesize=PAGE, title=_plain(page.title), author="Goodput", invariant=1,
        creator="Goodput", subject="GPU chargeback statement", lang="en",
    )  # fmt: skip
    story: list[Any] = [
        Paragraph(_text(page.title), TITLE),
        Paragraph(_text(page.subtitle), NOTE),
        Spacer(1, 3 * mm),
        _status(page),
        Spacer(1, 4 * mm),
        _tiles(page),
        Spacer(1, 5 * mm),
    ]
    if page.bars:
        chart = _bars(page.bars, page.sign, page.decimals)
        head = Paragraph(
            "What the accounts' money was spent on, before electricity and credits", HEAD
        )
        story.append(KeepTogether([head, chart]))
    for table in empty_tables_left_out(page.tables):
        parts = [Spacer(1, 4 * mm), Paragraph(_text(table.title), HEAD), _table(table)]
        if table.note:
            parts.append(Paragraph(_text(table.note), NOTE))
        is_short = len(table.rows) <= ROWS_TOGETHER
        story += [KeepTogether(parts)] if is_short else [CondPageBreak(32 * mm), *parts]
    notes = [Paragraph(f"• {_text(note)}", BODY) for note in page.notes]
    story += [Spacer(1, 4 * mm), KeepTogether([Paragraph("How it is reckoned", HEAD), *notes])]

    def footer(canvas: Any, _document: Any) -> None:
        canvas.setFont(FONT, 7)
        canvas.setFillColor(SOFT)
        canvas.drawString(MARGIN, 9 * mm, _plain(page.title))
        mark = "" if page.is_final else "Open: figures may still change.   "
        canvas.drawRightString(PAGE[0] - MARGIN, 9 * mm, f"{mark}Page {canvas.getPageNumber()}")

    frame = Frame(
        MARGIN, FOOT, WIDTH, PAGE[1] - MARGIN - FOOT,
        leftPadding=0, rightPadding=0, topPadding=0, bottomPadding=0,
    )  # fmt: skip
    document.addPageTemplates(PageTemplate("page", [frame], onPage=footer))
    document.build(story)
    return stream.getvalue()


def _plain(text: str) -> str:
    """Return text in the letters that the standard fonts have."""
    return text.encode("cp1252", errors="replace").decode("cp1252")


def _text(text: str) -> str:
    return escape(_plain(text))


def _status(page: Presentation) -> Grid:
    colour = ACCENT if page.is_final else OPEN
    grid = Grid([[Paragraph(_text(page.status), BODY)]], colWidths=[WIDTH])
    grid.setStyle(TableStyle([
        ("BACKGROUND", (0, 0), (-1, -1), CARD),
        ("LINEBEFORE", (0, 0), (0, -1), 3, colour),
        ("LEFTPADDING", (0, 0), (-1, -1), 8),
    ]))  # fmt: skip
    return grid


def _tiles(page: Presentation) -> Grid:
    big = ParagraphStyle("big", BODY, fontName=BOLD, fontSize=13, leading=17)
    cells = [
        [Paragraph(_text(label), NOTE), Paragraph(_text(value), big), Paragraph(_text(more), NOTE)]
        for label, value, more in page.tiles
    ]
    grid = Grid([cells], colWidths=[WIDTH / len(cells)] * len(cells))
    grid.setStyle(TableStyle([
        ("BOX", (i, 0), (i, 0), 0.6, LINE) for i in range(len(cells))
    ] + [("BACKGROUND", (0, 0), (-1, -1), CARD), ("VALIGN", (0, 0), (-1, -1), "TOP")]))  # fmt: skip
    return grid


def _bars(bars: Sequence[Bar], sign: str, decimals: int) -> Drawing:
    row, label_width, value_width = 5.2 * mm, 42 * mm, 24 * mm
    track = WIDTH - label_width - value_width
    height = row * (len(bars) + 1.4)
    widest = max((bar.total for bar in bars), default=Decimal(1)) or Decimal(1)
    drawing = Drawing(WIDTH, height)
    for i, bar in enumerate(bars):
        y = height - row * (i + 1)
        label = _plain(bar.label)[:LABEL_MAX_CHARS]
        drawing.add(String(0, y + 1.2 * mm, label, fontName=FONT, fontSize=8, fillColor=INK))
        x = label_width
        for _, colour, cost in bar.parts:
            width = float(cost / widest) * track
            fill = colors.HexColor(colour)
            drawing.add(Rect(x, y, width, row * 0.72, fillColor=fill, strokeColor=None))
            x += width
        drawing.add(
            String(WIDTH, y + 1.2 * mm, f"{sign}{bar.total:,.{decimals}f}", fontName=FONT,
                   fontSize=8, fillColor=INK, textAnchor="end")
        )  # fmt: skip
    x = label_width
    for name, colour in USES.values():
        drawing.add(
            Rect(
                x, 0.5 * mm, 2.6 * mm, 2.6 * mm, fillColor=colors.HexColor(colour), strokeColor=None
            )
        )
        drawing.add(
            String(x + 3.6 * mm, 0.8 * mm, name, fontName=FONT, fontSize=7.5, fillColor=SOFT)
        )
        x += stringWidth(name, FONT, 7.5) + 8 * mm
    return drawing


def _table(table: Table) -> LongTable:
    head = [
        Paragraph(_text(name), NUMBER_HEAD if is_number else CELL_HEAD)
        for name, is_number in table.columns
    ]
    cells = [_cells(table, row, CELL, NUMBER) for row in table.rows]
    if table.total:
        cells.append(_cells(table, table.total, TOTAL, NUMBER_TOTAL))
    grid = LongTable([head, *cells], colWidths=_widths(table), repeatRows=1)
    style: list[Any] = [
        ("LINEBELOW", (0, 0), (-1, 0), 1, LINE),
        ("LINEBELOW", (0, 1), (-1, -1), 0.4, LINE),
        ("VALIGN", (0, 0), (-1, -1), "TOP"),
        ("VALIGN", (0, 0), (-1, 0), "BOTTOM"),
        ("TOPPADDING", (0, 0), (-1, -1), 1.6),
        ("BOTTOMPADDING", (0, 0), (-1, -1), 1.6),
        ("LEFTPADDING", (0, 0), (-1, -1), 2.5),
        ("RIGHTPADDING", (0, 0), (-1, -1), 2.5),
    ]
    if table.total:
        style += [
            ("LINEABOVE", (0, -1), (-1, -1), 1, SOFT),
            ("BACKGROUND", (0, -1), (-1, -1), CARD),
        ]
    grid.setStyle(TableStyle(style))
    return grid


def _cells(
    table: Table, row: Sequence[str], text: ParagraphStyle, number: ParagraphStyle
) -> list[Paragraph]:
    return [
        Paragraph(_text(_cut(cell)), number if is_number else text)
        for cell, (_, is_number) in zip(row, table.columns, strict=True)
    ]


def _cut(text: str) -> str:
    return text if len(text) <= CELL_MAX_CHARS else f"{text[: CELL_MAX_CHARS - 1]}…"


def _widths(table: Table) -> list[float]:
    """Return column widths in proportion to what stands in them; words of a head stay whole."""
    wanted = []
    for i, (name, _) in enumerate(table.columns):
        longest = max((len(_cut(row[i])) for row in table.rows), default=0)
        word = max((len(part) for part in name.split()), default=0) + 1
        wanted.append(min(max(longest, word, 5), 44))
    return [max(WIDTH * part / sum(wanted), MIN_COLUMN) for part in wanted]
