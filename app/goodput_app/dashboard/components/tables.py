"""Tables as operators read them: names for columns, units in headers, raw numbers in cells."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import polars as pl
import streamlit as st

from goodput_app.dashboard import theme, time_zone
from goodput_app.dashboard.components import flag_parts, scope_bar, wall
from goodput_app.dashboard.components.rows import cards, downloads, name_links
from goodput_app.dashboard.table_columns import Columns
from goodput_app.text import glossary, units
from goodput_billing.statement.amounts.currency import PRICE_DECIMALS

ROW_PX = 33
WRAPPED_ROW_PX = 62  # over 4 rem, from where on Streamlit wraps texts; room for three lines
LINE_PX, CHAR_PX = 18, 6.2  # of a cell's text
LINES_MAX = 7
NEEDED_BY = 4  # one of so many rows
ROWS_SHOWN = 12
AUTO_ROWS = 10
CELL_MAX_CHARS = 300
MISSING = name_links.MISSING
CLOCK_FROM_S = 600
DAYS_FROM_S, DAYS_LEAST_S = 100 * 3600, 3600
HOURS_LEAST_S = 36  # what two decimals of an hour can show
BY_KEYBOARD = ":material/keyboard: arrow keys, Shift+Space opens the row"
UNITS = {  # suffix of a column -> unit in its header, divisor to it, suffix then, format
    "_gpu_s": ("GPU-s", 1, "", "%,.1f"),
    "_bytes_per_s": ("GB/s", 1e9, "_gb_per_s", "%,.1f"),
    "_bytes_per_h": ("GB", 1e9, "_gb_per_h", "%,.2f"),
    "_per_s": ("", 1, "", "compact"),
    "_bytes": ("GB", 1e9, "_gb", "%,.1f"),
    "_w": ("W", 1, "", "%,.0f"),
    "_hz": ("MHz", 1e6, "_mhz", "%,.0f"),
    "_kwh": ("kWh", 1, "", "%,.2f"),
    "_kg": ("kg CO2e", 1, "", "%,.2f"),
    "_c": ("\u00b0C", 1, "", "%.0f"),
}
LEAST_TENTH = 0.05  # below it one decimal reads 0.0
DIGITS = 6  # of an hour: less than 4 ms
TENTHS_FROM = 100  # a column with such a number has one decimal, others have two


def shaped(
    frame: pl.DataFrame, names: Mapping[str, str], wide: Mapping[str, Any] | None = None
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Return the named columns as they are shown, and Streamlit's configuration of each.

    names: column -> header, in order; a column's suffix says its unit. What is shown in another
    unit is called after that (`gpu_ms` in hours `gpu_h`), since a download has these names. Money
    without any price reads "no price", never $0.
    wide: configurations of columns of `names` that are not the usual ones
    """
    columns: list[pl.Series] = []
    config: dict[str, Any] = {}
    own = {**(_formatted(names) if isinstance(names, Columns) else {}), **(wide or {})}
    longest_ms = _longest_ms(frame, names)
    for name, header in names.items():
        series, shown_as = _column(frame, name, header, longest_ms)
        columns.append(series)
        config[series.name] = _explained(own.get(name, shown_as), header)
    return pl.DataFrame(columns), config


def _formatted(names: Columns) -> dict[str, Any]:
    """Return the configuration of the columns that have a format of their own."""
    return {
        name: st.column_config.NumberColumn(label, format=shown)
        for name, (shown, label) in names.formats.items()
        if name in names
    }


def _explained(shown_as: Any, header: str) -> Any:
    """Return the configuration of a column with the glossary's definition as hover text."""
    if (entry := glossary.find(header)) is None:
        return shown_as
    texts = [entry.hover, shown_as["help"]]  # the second one says what a mark in a cell means
    return {**shown_as, "help": " ".join(filter(None, texts))}


def _bounds(frame: pl.DataFrame, name: str) -> pl.Series:
    """Return an estimate with its bounds: lengths that are read side by side have one unit."""
    stem = name.removesuffix("_s").removesuffix("_low").removesuffix("_high")
    alike = {name, f"{stem}_s", f"{stem}_low_s", f"{stem}_high_s"} & set(frame.columns)
    return pl.concat([frame[one].cast(pl.Float64) for one in sorted(alike)])


def _longest_ms(frame: pl.DataFrame, names: Mapping[str, str]) -> float | None:
    """Return the most GPU time in any column of a table, whose columns all have its unit."""
    times = [frame[name] for name in names if name.endswith("_ms")]
    most = [series.cast(pl.Float64).abs().max() for series in times if series.dtype.is_numeric()]
    return max((one for one in most if isinstance(one, float)), default=None)


def _column(
    frame: pl.DataFrame, name: str, header: str, longest_ms: float | None
) -> tuple[pl.Series, Any]:
    series = frame.get_column(name)
    of = st.column_config
    if name == "cost" or name.endswith("_cost"):
        is_budget = name == "budget_cost"  # which an account may well be without
        if series.null_count() == series.len() and not is_budget:
            text = pl.Series(name, [units.NO_PRICE] * series.len(), dtype=pl.String)
            return text, of.TextColumn(header, help="The rate card has no price for it.")
        meaning = f"{MISSING}: no {'budget' if is_budget else 'price'}"
        code = units.currency()
        if code == "USD":
            return series, of.NumberColumn(header, format="dollar", help=meaning)
        return series, of.NumberColumn(f"{header} ({code})", format=money_format(), help=meaning)
    if series.dtype.is_numeric() and name.endswith("_ms"):
        return _gpu_time(series.cast(pl.Float64), header, longest_ms)
    if name.endswith("_ratio"):
        percent = (series.cast(pl.Float64) * 100).alias(f"{name.removesuffix('_ratio')}_percent")
        return percent, of.NumberColumn(f"{header} (%)", format="%.1f")
    for suffix, (unit, divisor, other, shown_as) in UNITS.items():
        if name.endswith(suffix):
            labelled = f"{header} ({unit})" if unit else header
            if divisor != 1:
                series = (series.cast(pl.Float64) / divisor).alias(
                    name.removesuffix(suffix) + other
                )
            return series, of.NumberColumn(labelled, format=shown_as)
    if name.endswith("_s"):
        return _lengths(series.cast(pl.Float64), header, _bounds(frame, name))
    if isinstance(series.dtype, pl.Datetime):
        return times(series, header)
    if series.dtype == pl.String:
        return texts(series), of.TextColumn(header)
    if series.dtype.is_integer():
        return series, of.NumberColumn(header, format="%,d")
    if series.dtype.is_float():
        return series, of.NumberColumn(header, format=_decimals(series))
    return series, of.Column(header)


def _decimals(numbers: pl.Series) -> str:
    """Return the format of a column of numbers: one number of decimals in all rows."""
    known = numbers.drop_nulls().drop_nans()
    most = known.abs().max()
    if not isinstance(most, float) or most < 1:
        return "localized"  # three decimals at most
    if (known == known.round()).all():
        return "%,.0f"
    return "%,.1f" if most >= TENTHS_FROM or (known == known.round(1)).all() else "%,.2f"


def texts(series: pl.Series) -> pl.Series:
    """Return texts as a cell shows them: of characters that can be printed, and cut."""
    cut = [None if v is None else theme.printable(v, CELL_MAX_CHARS) for v in series.to_list()]
    return pl.Series(series.name, cut, dtype=pl.String)


def without_folders(frame: pl.DataFrame) -> pl.DataFrame:
    """Return rows with the name alone of the files they came from: `origin`."""
    return frame.with_columns(pl.col("origin").str.split("/").list.last())


def times(series: pl.Series, header: str) -> tuple[pl.Series, Any]:
    """Return instants (naive UTC) with their zone, and the column that shows the page's zone.

    The rows stay UTC, and say so in a download. A column with the hours in which the clock changes
    shows the offset in each cell.
    """
    zone = time_zone.name()
    instants = series.dt.replace_time_zone("UTC")
    offsets = {time_zone.offset(at, zone) for at in (series.min(), series.max()) if at is not None}  # type: ignore[arg-type]
    shown = "YYYY-MM-DD HH:mm:ss" + (" Z" if len(offsets) > 1 else "")
    return instants, st.column_config.DatetimeColumn(
        f"{header} ({zone})", format=shown, timezone=zone
    )


def money_format(more_decimals: int = 0) -> str:
    """Return the format of amounts in the site's currency, which the header names."""
    return f"%,.{units.money_decimals() + more_decimals}f"


def price_column(
    header: str,
    prices: pl.Series | None = None,
    *,
    help: str | None = None,  # noqa: A002 -- Streamlit's word
) -> Any:
    """Return the column of prices of a unit, its header with the currency.

    prices: where none is below 1, they have the decimals of amounts
    """
    has_small = prices is None or (prices < 1).any()
    shown = money_format(PRICE_DECIMALS if has_small else 0)
    return st.column_config.NumberColumn(f"{header} ({units.currency()})", format=shown, help=help)


def _gpu_time(gpu_ms: pl.Series, header: str, longest_ms: float | None) -> tuple[pl.Series, Any]:
    """Return GPU time in the unit in which the longest of the table reads well."""
    unit, divisor = units.gpu_time_unit(longest_ms)
    of = gpu_ms.name.removesuffix("_ms").removesuffix("gpu")
    named = f"{of.removesuffix('_')}_{unit}".removeprefix("_").lower().replace("-", "_")
    shown = (gpu_ms / divisor).round(DIGITS).alias(named)
    known = shown.abs().drop_nulls()
    is_small = bool(((known > 0) & (known < LEAST_TENTH)).any())
    form = "%,.3f" if is_small else "%,.1f"
    return shown, st.column_config.NumberColumn(f"{header} ({unit})", format=form)


def _lengths(seconds: pl.Series, header: str, alike: pl.Series) -> tuple[pl.Series, Any]:
    """Return lengths in seconds, or as on a clock, or where hours are many in days or hours."""
    if not (alike >= CLOCK_FROM_S).any():
        return seconds, st.column_config.NumberColumn(f"{header} (s)", format="%,.1f")
    if (alike >= DAYS_FROM_S).any() and (alike >= DAYS_LEAST_S).all():
        days = (seconds / 86_400).alias(f"{seconds.name.removesuffix('_s')}_days")
        return days, st.column_config.NumberColumn(f"{header} (days)", format="%,.1f")
    if (alike >= DAYS_FROM_S).any() and (alike >= HOURS_LEAST_S).all():
        hours = (seconds / 3600).alias(f"{seconds.name.removesuffix('_s')}_hours")
        return hours, st.column_config.NumberColumn(f"{header} (h)", format="%,.2f")
    clock = (seconds.round() * 1000).cast(pl.Int64).cast(pl.Duration("ms"))
    return clock, st.column_config.NumberColumn(f"{header} (h:m:s)", format="compact")


def show(
    frame: pl.DataFrame,
    names: Mapping[str, str],
    key: str,
    *,
    rows: int = ROWS_SHOWN,
    wide: Mapping[str, Any] | None = None,
) -> None:
    """Draw a table, which downloads as CSV (its own menu) and Parquet."""
    columns = names if isinstance(names, Columns) else Columns(names)
    shown, config = shaped(frame, columns, wide)
    st.dataframe(
        shown,
        key=key,
        hide_index=True,
        column_config=_laid_out(config, columns),
        column_order=_order(shown, columns),
        placeholder=MISSING,
        **heights(shown, rows, _widths(shown, columns)),
    )
    downloads.parquet(shown, key)


def _laid_out(config: dict[str, Any], columns: Columns) -> dict[str, Any]:
    """Return configurations of columns with their widths; columns: of the frame, in order.

    None is pinned: Streamlit draws pinned columns in a grey of too little contrast.
    """
    return {
        column: {**shown_as, "width": columns.widths.get(name, shown_as.get("width"))}
        for (column, shown_as), name in zip(config.items(), columns, strict=True)
    }


def _order(shown: pl.DataFrame, columns: Columns) -> list[str]:
    """Return the columns that a table shows at first."""
    pairs = zip(shown.columns, columns, strict=True)
    return [column for column, name in pairs if name not in columns.hidden]


def _widths(shown: pl.DataFrame, columns: Columns) -> dict[str, int]:
    """Return the widths by the columns that are seen at first; none: rows are not wrapped."""
    first, widths = _order(shown, columns), columns.widths
    pairs = zip(shown.columns, columns, strict=True)
    return {column: widths[name] for column, name in pairs if name in widths and column in first}


def heights(shown: pl.DataFrame, most: int, widths: dict[str, int]) -> dict[str, Any]:
    """Return the height of a table and of its rows: room for the texts that are seen at first.

    All rows are of one height: of one line where every text has room in it, else of three lines or
    what a quarter of the rows needs; a longer text is cut.
    """
    needed = [0] * min(shown.height, most)
    for column, width in widths.items():
        if shown[column].dtype == pl.String and column != flag_parts.COLUMN:
            chars = max(1, int(width / CHAR_PX))
            for row, text in enumerate(shown[column].head(most).to_list()):
                needed[row] = max(needed[row], len(textwrap.wrap(text or "", chars)))
    if max(needed, default=0) <= 1:
        return {"height": height(shown.height, most)}
    lines = sorted(needed, reverse=True)[len(needed) // NEEDED_BY]
    row_px = wall.scaled(max(WRAPPED_ROW_PX, 8 + LINE_PX * min(lines, LINES_MAX)))
    whole = wall.scaled(ROW_PX) + min(shown.height, most) * row_px + 3
    return {"height": whole, "row_height": row_px}


def pick(
    frame: pl.DataFrame,
    names: Mapping[str, str],
    key: str,
    ids: pl.Series,
    *,
    rows: int = ROWS_SHOWN,
    wide: Mapping[str, Any] | None = None,
    opens: Sequence[Mapping[str, str | None]] | None = None,
    first_opens: Sequence[Mapping[str, str | None]] | None = None,
) -> dict[str, Any] | None:
    """Draw a table whose rows can be picked, and return the picked row of the frame.

    Rows that name what has an open finding carry a flag. A click on a name opens its page; where no
    column names a page, one on the first column picks the row. The pick is kept in the URL under
    `key`, as the row's id, so that a link shows it and Back closes it.

    opens: the query parameters that a row sets instead, one mapping a row
    first_opens: those that a click on the first column sets, where they are others
    """
    known, columns = ids.to_list(), names if isinstance(names, Columns) else Columns(names)
    flagged, columns, wide = flag_parts.marked(frame, columns, wide)

    def choose(row: int | None, opens: Sequence[Mapping[str, str | None]] | None = opens) -> None:
        if row is not None and opens is not None:
            scope_bar.go(dict(opens[row]))
        else:
            cards.choose(key, None if row is None else known[row], "table")

    def picked() -> None:
        rows = st.session_state[f"pick_{key}"].selection.rows
        choose(rows[0] if rows and rows[0] < len(known) else None)

    shown, config = shaped(flagged, columns, wide)
    laid_out, order = _laid_out(config, columns), _order(shown, columns)
    links = [name for name in name_links.columns(frame) if name in order]
    for name in links:
        laid_out[name] = name_links.column(laid_out[name], name, key, frame)
    hint = name_links.HINT if links else ""
    if not links and _is_short_text(shown[name := order[0]], laid_out[name]["width"]):
        links, hint = [name], f"a click or Enter on {laid_out[name]['label']} too"
        laid_out[name] = name_links.button(
            laid_out[name], f"open_{key}_{name}", lambda row: choose(row, first_opens or opens)
        )
    chosen = st.query_params.get(key)
    if opens is None:
        _select(f"pick_{key}", [known.index(chosen)] if chosen in known else [])
    st.dataframe(
        shown.with_columns(name_links.plain(shown[name]) for name in links),
        key=f"pick_{key}",
        hide_index=True,
        column_config=laid_out,
        column_order=order,
        placeholder=MISSING,
        on_select=picked,
        selection_mode="single-row",
        **heights(shown, rows, _widths(shown, columns)),
    )
    _footer(shown, key, hint)
    return frame.row(known.index(chosen), named=True) if chosen in known else None


def _footer(shown: pl.DataFrame, key: str, hint: str) -> None:
    """Draw the download of a table whose rows can be picked, and how to pick one."""
    with st.container(horizontal=True, vertical_alignment="center"):
        downloads.parquet(shown, key)
        st.caption("; ".join(filter(None, (BY_KEYBOARD, hint))))


def _is_short_text(column: pl.Series, width: object) -> bool:
    """Say whether a column is of texts that have room in one line."""
    if column.dtype != pl.String or column.name == flag_parts.COLUMN:
        return False
    longest = max(map(len, column.drop_nulls()), default=0)
    return not isinstance(width, int) or longest * CHAR_PX <= width


def _select(key: str, rows: list[int]) -> None:
    """Select those rows of a table where others are: a link, a chart or Back chose them."""
    state = st.session_state.get(key)
    if (state["selection"]["rows"] if state else []) != rows:
        st.session_state[key] = {"selection": {"rows": rows}}


def height(rows: int, most: int) -> int | Literal["auto"]:
    """Return the height of a table of so many rows, of which `most` are seen at once."""
    is_short = rows <= min(most, AUTO_ROWS)
    return "auto" if is_short else wall.scaled(ROW_PX) * (1 + min(rows, most)) + 3
