"""The rack grid: a cell for each GPU, or node, in its rack.

A pure function from a frame to a Plotly figure. Cells are bars, so that they scale with the page,
can be clicked and hatched. `customdata[0]` of a mark is what it opens. Names from the data are
escaped.
"""

from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl

from goodput_app.dashboard import theme
from goodput_app.dashboard.figures.fleet import cell_colours
from goodput_app.dashboard.figures.ledger import finished, marker
from goodput_app.dashboard.figures.legend import TOP_PX, with_legend
from goodput_app.dashboard.figures.telemetry import MARKERS

CELL_PX = 17
GRID_TOP_PX = 4
CELLS_ACROSS = 36
NODES_DOWN = 18  # of a rack: more go on in a column of their own
TITLE_CELLS = 1.5
TITLE_MAX_CHARS = 24
CHARS_OF_CELL = 1.6  # of a title, where the page is as narrow as a phone
GAP_CELLS = 1.0
CELL_SIZE = 0.88
NOT_AVAILABLE = "not_available"  # a group of the ledger
HOLLOW = {"color": "rgba(0, 0, 0, 0)", "line": {"width": 1.5, "color": "#5d6b7a"}}
SCALE_CELLS = 7.0  # height that a colour bar needs


def placed(cells: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, float]:
    """Return cells with `x` and `y`, the titles of racks with theirs, and the height of all.

    cells: `block` (name of the rack), `line` (a node of it), in order. The cells of a line stand
    next to each other; racks fill the width and go on below.
    """
    sized = (
        cells.with_columns(block_nr=pl.col("block").rle_id())
        .with_columns(line_nr=pl.col("line").rle_id())
        .with_columns(
            line_nr=pl.col("line_nr") - pl.col("line_nr").min().over("block_nr"),
            place=pl.int_range(pl.len()).over("block_nr", "line"),
        )
        .with_columns(part=pl.col("line_nr") // NODES_DOWN, line_nr=pl.col("line_nr") % NODES_DOWN)
    )
    blocks = sized.group_by("block_nr", "part", maintain_order=True).agg(
        pl.col("block").first(), width=pl.col("place").max() + 1, down=pl.col("line_nr").max() + 1
    )
    x, y, deepest, spots = 0.0, 0.0, 0.0, []
    for row in blocks.iter_rows(named=True):
        if x > 0 and x + row["width"] > CELLS_ACROSS:
            x, y, deepest = 0.0, y + TITLE_CELLS + deepest, 0.0
        title = row["block"] if row["part"] == 0 else ""
        spots.append((row["block_nr"], row["part"], title, x, y + TITLE_CELLS))
        x += row["width"] + GAP_CELLS
        deepest = max(deepest, row["down"])
    schema = {
        "block_nr": sized.schema["block_nr"],
        "part": sized.schema["part"],
        "title": pl.String(),
        "x0": pl.Float64(),
        "y0": pl.Float64(),
    }
    titles = pl.DataFrame(spots, schema=schema, orient="row")
    found = sized.join(titles, on=["block_nr", "part"], how="left", maintain_order="left")
    at = found.with_columns(x=pl.col("x0") + pl.col("place"), y=pl.col("y0") + pl.col("line_nr"))
    return at.drop("x0", "y0", "title"), titles, y + TITLE_CELLS + deepest


def rack_grid(
    cells: pl.DataFrame,
    metric: cell_colours.Metric | None,
    marks: pl.DataFrame,
    *,
    are_nodes: bool = False,
) -> go.Figure:
    """Return a cell for each GPU (or node) in its rack, by category or by a metric.

    cells: `block`, `line`, `id`, `hover` (escaped), `events`, and `category`, `label` and `colour`,
    or `value`
    marks: `node_key`, `severity` and `title` of nodes that need somebody
    """
    at, titles, height = placed(cells)
    if metric is not None:
        height = max(height, SCALE_CELLS)
    figure = go.Figure()
    if metric is None:
        for label, colour in cell_colours.labels_of(at):
            of_it = at.filter(pl.col("label").eq_missing(pl.lit(label)))
            name = f"{theme.plotly_text(label or cell_colours.NO_DATA)} ({of_it.height})"
            look = HOLLOW if of_it["category"][0] == NOT_AVAILABLE else marker(colour)
            _add_cells(figure, of_it, look, name, is_in_legend=True)
    else:
        scaled = at.with_columns(pl.col("value") * metric.scale)
        missing = scaled.filter(pl.col("value").is_null())
        _add_cells(
            figure,
            scaled.drop_nulls("value"),
            _coloured(scaled, metric),
            metric.name,
            is_in_legend=False,
        )
        if not missing.is_empty():
            look = {"color": cell_colours.NO_DATA_COLOUR, "line": {"width": 0}}
            _add_cells(
                figure,
                missing,
                look,
                f"{cell_colours.NO_DATA} ({missing.height})",
                is_in_legend=True,
            )
    _add_marks(figure, at, marks, are_nodes=are_nodes)
    # all at once: to add one validates all those before it
    next_x = pl.col("x0").shift(-1).over("y0").fill_null(CELLS_ACROSS)
    named = titles.filter(pl.col("title") != "").select(
        "title", "x0", "y0", room=((next_x - pl.col("x0")) * CHARS_OF_CELL).cast(pl.Int64)
    )
    figure.update_layout(annotations=[_title(*row) for row in named.iter_rows()])
    hidden = {"visible": False, "fixedrange": True}
    figure.update_xaxes(**hidden, range=[-0.2, CELLS_ACROSS + 0.2])
    figure.update_yaxes(**hidden, range=[height + 0.2, 0])
    figure.update_layout(barmode="overlay", hovermode="closest")
    return with_legend(finished(figure, height=TOP_PX), height * CELL_PX, top_px=GRID_TOP_PX)


def _title(title: str, x: float, y: float, room: int) -> dict[str, Any]:
    text = theme.plotly_text(title, min(room, TITLE_MAX_CHARS))
    return {
        "x": x, "y": y - 0.1, "text": text, "showarrow": False,
        "xanchor": "left", "yanchor": "bottom", "font": {"size": 12},
    }  # fmt: skip


def _add_cells(
    figure: go.Figure, cells: pl.DataFrame, look: dict[str, Any], name: str, *, is_in_legend: bool
) -> None:
    figure.add_bar(
        x=(cells["x"] + 0.5).to_numpy(),
        y=np.full(cells.height, CELL_SIZE),
        base=cells["y"].to_numpy(),
        width=CELL_SIZE,
        marker=look,
        name=name,
        showlegend=is_in_legend,
        customdata=cells.select("id", "hover").rows(),
        hovertemplate="%{customdata[1]}<extra></extra>",
    )


def _coloured(cells: pl.DataFrame, metric: cell_colours.Metric) -> dict[str, Any]:
    values = cells["value"].drop_nulls()
    return {
        "color": values.cast(pl.Float32).to_numpy(),
        "line": {"width": 0},
        **cell_colours.colour_scale(metric, values.min(), values.max()),
        "showscale": True,
        "colorbar": cell_colours.colour_bar(metric),
    }


def _add_marks(
    figure: go.Figure, cells: pl.DataFrame, marks: pl.DataFrame, *, are_nodes: bool
) -> None:
    """Add a mark behind the GPUs of a node, or on the cell of a node."""
    key = pl.col("id").str.strip_prefix("node:") if are_nodes else pl.col("line")
    ends = cells.group_by(key.alias("node_key")).agg(pl.col("x").max(), pl.col("y").first())
    found = ends.join(marks, on="node_key").sort("severity", "node_key")
    for (severity,), of_it in found.group_by("severity", maintain_order=True):
        figure.add_scatter(
            x=(of_it["x"] + (0.5 if are_nodes else 1.2)).to_numpy(),
            y=(of_it["y"] + CELL_SIZE / 2).to_numpy(),
            mode="markers",
            marker=MARKERS[str(severity)],
            name=f"{severity} ({of_it.height})",
            showlegend=True,
            customdata=[
                (f"node:{key}", f"<b>{theme.plotly_text(key)}</b><br>{theme.plotly_text(title)}")
                for key, title in of_it.select("node_key", "title").iter_rows()
            ],
            hovertemplate="%{customdata[1]}<extra></extra>",
        )
