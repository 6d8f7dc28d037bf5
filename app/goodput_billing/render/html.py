"""The statement as one HTML page that needs nothing else: no script, no font, no picture."""

from decimal import Decimal

from goodput_billing.render import templates
from goodput_billing.render.presentation import USES, Presentation
from goodput_billing.render.wording import empty_tables_left_out

TEMPLATE = "statement.html.j2"


def html(page: Presentation) -> bytes:
    """Return the page; names of accounts, users and jobs are escaped, whatever they hold."""
    widest = max((bar.total for bar in page.bars), default=Decimal(1))
    text = templates.template("goodput_billing.render", TEMPLATE).render(
        page=page,
        tables=empty_tables_left_out(page.tables),
        widest=widest,
        uses=list(USES.values()),
    )
    return text.encode()
