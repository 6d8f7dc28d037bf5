import polars as pl
import pytest

from goodput_ingest.formats import row_groups
from goodput_ingest.formats.parsed import Parsed
from goodput_ingest.formats.row_groups import Held
from goodput_ingest.source import Reject


@pytest.fixture(autouse=True)
def _small_groups(monkeypatch):
    monkeypatch.setattr(row_groups, "ROW_GROUP", 10)


def held(*sizes):
    found, at = Held("gpu_samples"), 0
    for size in sizes:
        found.add(Parsed("gpu_samples", pl.DataFrame({"n": range(at, at + size)})))
        at += size
    return found


@pytest.mark.parametrize(
    ("sizes", "handed_on"), [((19,), 0), ((20,), 10), ((5, 14), 0), ((5, 30, 4), 20), ((), 0)]
)
def test_whole_groups_are_handed_on_and_one_stays(sizes, handed_on):
    parts = held(*sizes)

    whole = parts.whole_groups()

    assert (whole.rows.height if whole else 0) == handed_on


def test_no_row_is_lost_or_duplicated():
    parts, found = held(), list[Parsed]()
    for at in range(0, 91, 7):
        parts.add(Parsed("gpu_samples", pl.DataFrame({"n": range(at, at + 7)})))
        if whole := parts.whole_groups():
            found.append(whole)

    combined = pl.concat([part.rows for part in (*found, parts.rest())])

    assert combined["n"].to_list() == list(range(91))


def test_what_was_rejected_is_reported_once():
    parts = held(15)
    parts.add(Parsed("gpu_samples", pl.DataFrame({"n": range(15)}), [Reject(7, "why", "what")]))

    combined = [parts.whole_groups(), parts.rest()]

    assert [len(part.rejects) for part in combined if part] == [1, 0]


def test_parts_may_lack_columns_and_number_their_texts_each_for_itself():
    parts = Held("gpu_samples")
    for name in ("a", "b"):
        uuid = pl.Series([name], dtype=pl.Enum([name]))
        parts.add(Parsed("gpu_samples", pl.DataFrame({"gpu_uuid": uuid, name: [1]})))

    assert parts.rest().rows.rows() == [("a", 1, None), ("b", None, 1)]
