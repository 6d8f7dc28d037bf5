"""Which texts of Slurm are known by their content, and what happens with those that are damaged."""

import pytest

from goodput_ingest.formats import delimited
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.slurm.texts import Slurm
from goodput_queries.errors import IngestError


def accounting(*clusters):
    """Return `sacct -P` of a job in each of these clusters."""
    rows = [f"{name}|{n}|COMPLETED|10{n}|11{n}|12{n}\n" for n, name in enumerate(clusters, 1)]
    return "Cluster|JobIDRaw|State|Submit|Start|End\n" + "".join(rows)


def test_row_groups_of_accounting_are_written_two_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "LINES_PER_BLOCK", 2)
    file = tmp_path / "file"
    file.write_text(accounting(*["lab"] * 7))
    before = list(Slurm(file, ReadOptions()).extract())
    file.write_text(accounting(*["lab"] * 8))
    after = list(Slurm(file, ReadOptions()).extract())

    assert [batch.rows["job_id_raw"].to_list() for batch in before] == [list("1234"), list("567")]
    assert [batch.rows["job_id_raw"].to_list() for batch in after] == [list("1234"), list("5678")]
    assert after[0].digest == before[0].digest
    assert after[1].digest != before[1].digest


def test_accounting_before_what_is_refused_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "LINES_PER_BLOCK", 2)
    file = tmp_path / "file"
    file.write_text(accounting("lab", "lab", "lab", ""))
    batches = Slurm(file, ReadOptions()).extract()

    assert next(batches).rows["job_id_raw"].to_list() == ["1", "2"]
    with pytest.raises(IngestError, match="do not name their cluster"):
        next(batches)
