"""Notes, disputes and credits of the days on the Cost page, and the forms that write them."""

from collections.abc import Callable

import polars as pl
import streamlit as st

from goodput_app.access.current import current_identity
from goodput_app.access.identity import Action
from goodput_app.dashboard import statement_actions, theme
from goodput_app.dashboard.components import tables, wall
from goodput_app.dashboard.components.cost.cost_parts import in_browser
from goodput_app.dashboard.components.cost.cost_scope import Shown
from goodput_app.dashboard.table_columns import headers
from goodput_app.process.store import current_store
from goodput_billing.adjustments.record import OUTCOMES, REASON_MAX_CHARS, Target
from goodput_billing.render.adjustments_table import WORDS
from goodput_queries.errors import GoodputError

SAID, WRITTEN = "adjustment_said", "adjustments_written"
COLUMNS = headers("cost_adjustments.columns")
AMOUNT_HELP = "In the currency of the statement, such as 12.50; at most what was billed."


def show(shown: Shown, target: Target | None) -> None:
    """Draw what was written about the days, and the forms of who may write.

    target: what the picked row of the statement is; forms begin with it.
    """
    if (said := st.session_state.pop(SAID, None)) is not None:
        st.success(said, icon=":material/check:")
    found = statement_actions.listed(current_store())
    of_days = _of_days(found, shown)
    if of_days.is_empty():
        st.caption("There are no notes, disputes or credits about these days.")
    else:
        words = of_days.with_columns(
            pl.col("kind").replace_strict(WORDS),
            pl.col("status").replace("", None),
            pl.col("day", "booked_on").dt.to_string(),
        )
        filled = COLUMNS.filled(words)
        amount = st.column_config.NumberColumn(COLUMNS["amount"], format=tables.money_format())
        wide = {"amount": amount} if "amount" in filled else None
        tables.show(in_browser(words), filled, "adjustments", rows=8, wide=wide)
    if others := found.height - of_days.height:
        st.caption(f"{others:,} more are about other days or accounts: `goodput adjust list`.")
    if getattr(current_store(), "is_read_only", False) or wall.is_on():
        return
    may = current_identity().may
    if not may(Action.WRITE_NOTE):
        st.caption("Operators and finance write notes and disputes; ask an admin for that role.")
        return
    _write(shown, target, may_credit=may(Action.GIVE_CREDIT))
    disputes = of_days.filter(pl.col("status") == "open")
    if disputes.height and may(Action.GIVE_CREDIT):
        _resolve(disputes)


def beside(frame: pl.DataFrame, by: str, shown: Shown) -> pl.DataFrame:
    """Return rows of the statement with what was written about each, column `adjustments`."""
    if by not in statement_actions.LINE_OF:  # nobody writes about a partition or a GPU model
        return frame
    found = _of_days(statement_actions.listed(current_store()), shown, is_booked_there=False)
    about = statement_actions.words(found, by)
    if by == "":
        frame = frame.with_columns(pl.when("is_account").then("label").alias("of_account"))
        joined = frame.join(
            about, left_on=["cluster", "of_account"], right_on=["cluster", "label"], how="left",
            maintain_order="left",
        )  # fmt: skip
        return joined.drop("of_account")
    return frame.join(about, on=["cluster", "label"], how="left", maintain_order="left")


def _of_days(found: pl.DataFrame, shown: Shown, *, is_booked_there: bool = True) -> pl.DataFrame:
    """Return what is about the days and accounts shown, or is booked on these days."""
    dates = [day.day.date for day in shown.days]
    is_there = pl.col("day").is_in(dates)
    if is_booked_there:
        is_there |= pl.col("booked_on").is_in(dates)
    accounts = shown.accounts.filter("is_account").select("cluster", "account").unique()
    return found.filter(is_there).join(
        accounts, on=["cluster", "account"], how="semi", maintain_order="left"
    )


def _write(shown: Shown, target: Target | None, *, may_credit: bool) -> None:
    kinds = ["note", "dispute", *(["credit"] if may_credit else [])]
    title = "Write a note, dispute or credit" if may_credit else "Write a note or dispute"
    with st.expander(title, expanded=target is not None, icon=":material/edit_note:"):
        days = {day.day.date: day for day in reversed(shown.days) if day.accounts.height}
        if not days:
            st.caption("No day with evidence.")
            return
        named = target or Target(next(iter(days)), "")
        # another row has other defaults, and what was written is cleared
        key = f"{_written_before()}|{named.account}|{named.user_name}|{named.line}"
        with st.form("write_adjustment", border=False):
            with st.container(horizontal=True, gap="small"):
                kind = st.selectbox(
                    "Kind", kinds, key="adjust_kind", format_func=WORDS.__getitem__, width=140
                )
                when = st.selectbox("Day", list(days), key="adjust_day", width=150)
                account = _account(shown, named, key)
                user = st.text_input(
                    "User", named.user_name or "", key=f"adjust_user_{key}", width=160,
                    placeholder="all",
                )  # fmt: skip
                line = st.text_input(
                    "Line", named.line or "", key=f"adjust_line_{key}", width=200,
                    placeholder="all", help="A run id, or a kind such as usage.",
                )  # fmt: skip
                amount = ""
                if may_credit:
                    amount = st.text_input(
                        "Amount of a credit",
                        key=f"adjust_amount_{_written_before()}",
                        width=160,
                        help=AMOUNT_HELP,
                    )
            reason = _reason(f"adjust_reason_{_written_before()}")
            if not st.form_submit_button("Write", icon=":material/edit_note:"):
                return
        cluster, name = account
        about = Target(when, name, user.strip() or None, line.strip() or None, cluster)
        _done(
            lambda: _written(kind, about, amount.strip(), reason),
            f"{WORDS[kind]} on {when} written.",
        )


def _written(kind: str, about: Target, amount: str, reason: str) -> str:
    if kind == "credit":
        return statement_actions.credit(current_store(), about, amount, reason)
    return statement_actions.speak(current_store(), kind, about, reason)


def _account(shown: Shown, named: Target, key: str) -> tuple[str, str]:
    frame = shown.accounts.filter("is_account").select("cluster", "account").unique()
    options: list[tuple[str, str]] = frame.sort("account", "cluster").rows()
    has_clusters = frame["cluster"].n_unique() > 1
    wanted = (named.cluster, named.account)
    return st.selectbox(
        "Account",
        options,
        index=next((i for i, option in enumerate(options) if option == wanted), 0),
        key=f"adjust_account_{key}",
        format_func=lambda of: theme.printable(f"{of[1]} ({of[0]})" if has_clusters else of[1]),
        width=200,
    )


def _resolve(disputes: pl.DataFrame) -> None:
    with st.expander("Resolve a dispute", icon=":material/gavel:"):
        names = {
            row["adjustment_id"]: f"{row['day']}, {row['account']}: {row['reason']}"
            for row in disputes.iter_rows(named=True)
        }
        with st.form("resolve_dispute", border=False):
            with st.container(horizontal=True, gap="small"):
                dispute = st.selectbox(
                    "Dispute", list(names), key="resolve_id", width=320,
                    format_func=lambda of: theme.printable(names[of], 120),
                )  # fmt: skip
                outcome = st.selectbox(
                    "Outcome", OUTCOMES, key="resolve_outcome", width=150, format_func=str.title
                )
                amount = st.text_input(
                    "Amount of a credit", key=f"resolve_amount_{_written_before()}",
                    width=160, placeholder="none",
                    help=f"{AMOUNT_HELP} Of an accepted dispute, for a closed day.",
                )  # fmt: skip
            reason = _reason(f"resolve_reason_{_written_before()}")
            if not st.form_submit_button("Resolve", icon=":material/gavel:"):
                return
        _done(
            lambda: statement_actions.resolve(
                current_store(), dispute, outcome, amount.strip(), reason
            ),
            f"Dispute {dispute} {outcome}.",
        )


def _written_before() -> int:
    return int(st.session_state.get(WRITTEN, 0))


def _reason(key: str) -> str:
    return st.text_input(
        "Reason", key=key, max_chars=REASON_MAX_CHARS, help="Shown on statements with your name."
    )


def _done(act: Callable[[], object], said: str) -> None:
    """Act and draw the page again with what was done, or say why not."""
    try:
        with st.spinner("Writing"):
            act()
    except GoodputError as error:
        st.warning(theme.markdown_text(error), icon=":material/error:")
        return
    st.session_state[SAID] = said
    st.session_state[WRITTEN] = _written_before() + 1
    st.rerun()
