"""What charts of the fleet share: metrics that colour cells, scales, categories, no data."""

from dataclasses import dataclass
from typing import Any

import polars as pl

from goodput_app.dashboard import theme

NO_DATA = "No data"
NO_DATA_COLOUR = "rgba(138, 148, 163, 0.28)"
EVENTS = "Events"
EVENT_MARK = {
    "symbol": "diamond",
    "size": 7,
    "color": theme.STYLES["fault"].colour,
    "line": {"width": 1, "color": theme.MARK_COLOUR},
}


@dataclass(frozen=True)
class Metric:
    """A metric that colours cells: its name, unit and the factor from the base unit."""

    name: str
    unit: str
    scale: float = 1.0
    is_share: bool = False


def labels_of(frame: pl.DataFrame) -> list[tuple[str | None, str | None]]:
    """Return the categories of a frame in the order of legends: label and colour."""
    found = frame.select("category", "label", "colour").unique().to_dicts()
    found.sort(key=lambda row: theme.rank(row["category"] or ""))
    return [(row["label"], row["colour"]) for row in found]


def colour_scale(metric: Metric, low: Any, high: Any, *, prefix: str = "c") -> dict[str, Any]:
    """Return the colour scale: of a share from 0 to 100 %, else from the lowest to the highest."""
    ends = (0.0, 100.0) if metric.is_share else (float(low or 0), float(high or 0))
    if ends[0] == ends[1]:
        ends = ends[0] - 1, ends[1] + 1
    return {"colorscale": theme.HEATMAP_SCALE, f"{prefix}min": ends[0], f"{prefix}max": ends[1]}


def colour_bar(metric: Metric) -> dict[str, Any]:
    """Return how the scale of a metric is drawn."""
    return {
        "title": {"text": metric.unit, "side": "top"}, "thickness": 12, "len": 1.0,
        "xpad": 6, "nticks": 5, "outlinewidth": 0,
    }  # fmt: skip
