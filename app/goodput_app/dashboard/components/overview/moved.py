"""What moved: the wasted cost of the earlier window, what each group added, and of this range."""

import streamlit as st

from goodput_app.dashboard import theme
from goodput_app.dashboard.figures import bars
from goodput_app.text import units
from goodput_app.weekly.like_for_like import Compared, changes, said_of

TOTAL_COLOUR = "drained"


def draw(compared: Compared, this: str = "this range") -> None:
    """Draw the waterfall; in GPU time where nothing has a price. this: name of the window."""
    is_priced = compared.wasted == "wasted_cost"
    rows = changes(compared.now, compared.then, compared.wasted)
    before, after = compared.totals
    shown = [units.amount(before, is_priced=is_priced)]
    shown += [units.signed(amount, is_priced=is_priced) for _, amount, _ in rows]
    shown.append(units.amount(after, is_priced=is_priced))
    parts = [bars.Part(label, amount, colour, label) for label, amount, colour in rows]
    first = bars.Part(compared.windows.name.removeprefix("the "), before, TOTAL_COLOUR)
    st.html(bars.steps(first, parts, bars.Part(this, after, TOTAL_COLOUR), shown))
    st.caption(theme.markdown_text(said_of(compared.windows)))
