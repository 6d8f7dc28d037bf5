"""Carbon intensities that a site writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.registry import recognise
from goodput_ingest.sources.site.carbon import Carbon

if TYPE_CHECKING:
    from pathlib import Path

    from goodput_queries.evidence.batch import Batch


def carbon(folder: Path, text: str, cluster: str | None = None) -> Batch:
    file = folder / "carbon.csv"
    file.write_text(text)
    assert recognise(file) is Carbon
    (batch,) = Carbon(file, ReadOptions(cluster=cluster)).extract()
    return batch


def test_an_intensity_alone_holds_always_and_adds_nothing(tmp_path: Path) -> None:
    row = carbon(tmp_path, "g_per_kwh\n400\n").rows.row(0, named=True)

    assert (row["valid_from_at"], row["valid_to_at"], row["cluster"]) == (None, None, None)
    assert (row["pue"], row["server_ratio"]) == (1, 1)


def test_a_share_that_is_not_given_is_unknown(tmp_path: Path) -> None:
    rows = carbon(tmp_path, "g_per_kwh,carbon_free_ratio\n400,\n0,1\n").rows

    assert rows["carbon_free_ratio"].to_list() == [None, 1]


def test_the_command_names_the_cluster_where_the_row_does_not(tmp_path: Path) -> None:
    rows = carbon(tmp_path, "cluster,g_per_kwh\neast,1\n,2\n", "west").rows

    assert rows["cluster"].to_list() == ["east", "west"]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (",0.5,,", "g_per_kwh '' is not a number"),
        ("-1,,,", "is not an amount"),
        ("nan,,,", "is not an amount"),
        ("6000,,,", "is more than 5000"),
        ("400,1.1,,", "is not a share from 0 to 1"),
        ("400,,0.9,", "is not a ratio from 1 to 100"),
        ("400,,,2027-01-01T00:30:00Z", "is not a whole hour"),
    ],
)
def test_a_row_that_is_no_intensity_is_rejected(tmp_path: Path, row: str, expected: str) -> None:
    batch = carbon(tmp_path, f"g_per_kwh,carbon_free_ratio,pue,valid_from\n{row}\n")

    assert batch.rows.is_empty()
    assert expected in batch.rejects[0].reason
