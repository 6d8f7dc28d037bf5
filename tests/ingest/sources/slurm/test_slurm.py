"""Which texts of Slurm are known by their content, and what happens with those that are damaged."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goodput_ingest.formats import delimited
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.slurm.texts import Slurm, kind_of
from goodput_queries.errors import IngestError

GOLDEN = Path(__file__).parents[2] / "golden" / "slurm"
INPUTS = sorted(GOLDEN.glob("*/input.txt"))
OPTIONS = ReadOptions(
    cluster="lab",
    zone=ZoneInfo("UTC"),
    observed_at=datetime(2026, 11, 20, 12, tzinfo=UTC).replace(tzinfo=None),
)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "Account,AllocCPUS,JobID,JobIDRaw,State,Submit\n",
        "JobID           JobName    State\n------------ ---------- ------\n",
        "JOBID|NAME|USER|STATE|SUBMIT_TIME|NODELIST\n7|x|alice|RUNNING|2026-11-20T11:45:39|n1\n",
        "NodeName=node001 Name=gpu Type=h100 File=/dev/gpu[0-7]\n",
        "NodeName=node[001-004] CPUs=16 RealMemory=64000 State=UNKNOWN\nPartitionName=gpu\n",
        "PartitionName=gpu AllowGroups=ALL Nodes=node[001-004] State=UP\n",
        "Cluster|Account|User|Partition|QOS\nlab|a|alice||normal\n",
        "ts,node,state\n1,a,idle\n",
        "NODELIST STATE\nnode001 idle\n",
    ],
)
def test_other_texts_are_not_claimed(text: str) -> None:
    assert not Slurm.recognises(Path("any"), text.encode())


def test_a_cut_archive_keeps_what_came_before_and_says_so(tmp_path: Path) -> None:
    whole = GOLDEN / "22_05_sacct_steps_and_duplicates" / "input.txt"
    file = tmp_path / "cut.gz"
    file.write_bytes(gzip.compress(whole.read_bytes(), mtime=0)[:3_000])

    batches = list(Slurm(file, OPTIONS).extract())

    assert batches[0].rows.height > 0
    assert any("cut or damaged" in reject.reason for reject in batches[0].rejects)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_no_damage_to_any_text_crashes_the_reader(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    whole = data.draw(st.sampled_from(INPUTS)).read_bytes()[:6_000]
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(whole)))
        until = data.draw(st.integers(at, min(len(whole), at + 200)))
        put = data.draw(
            st.one_of(
                st.binary(max_size=20),
                st.sampled_from(list(b"|=\n[]():,\x1f\0")).map(lambda byte: bytes([byte])),
            )
        )
        whole = whole[:at] + put + whole[until:]
    file = tmp_path_factory.mktemp("damaged") / "input.txt"
    file.write_bytes(whole)

    try:
        batches = list(Slurm(file, OPTIONS).extract())
    except IngestError:
        return
    assert all(batch.source == "slurm" for batch in batches)


@settings(max_examples=150, deadline=None)
@given(
    noise=st.binary(max_size=400),
    start=st.sampled_from(
        [
            b"",
            b"JobID|State|Submit|Start|End\n",
            b"JobId=1 ",
            b"NodeName=a Arch=x CPUAlloc=0 ",
            b"ReservationName=",
            b"NODELIST|STATE|GRES\n",
            b"Cluster|NodeName|TimeStart|TimeEnd|State\n",
            b"n1|idle|(null)|gpu:1|none|Unknown|u\n",
        ]
    ),
)
def test_noise_after_any_beginning_never_crashes_the_reader(
    noise: bytes, start: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("noise") / "input.txt"
    file.write_bytes(start + noise)

    kind_of(start + noise)
    try:
        list(Slurm(file, OPTIONS).extract())
    except IngestError as error:
        assert str(error)  # noqa: PT017 -- that it is stated is the point


def accounting(*clusters: str) -> str:
    """Return `sacct -P` of a job in each of these clusters."""
    rows = [f"{name}|{n}|COMPLETED|10{n}|11{n}|12{n}\n" for n, name in enumerate(clusters, 1)]
    return "Cluster|JobIDRaw|State|Submit|Start|End\n" + "".join(rows)


def test_row_groups_of_accounting_are_written_two_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_accounting_before_what_is_refused_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delimited, "LINES_PER_BLOCK", 2)
    file = tmp_path / "file"
    file.write_text(accounting("lab", "lab", "lab", ""))
    batches = Slurm(file, ReadOptions()).extract()

    assert next(batches).rows["job_id_raw"].to_list() == ["1", "2"]
    with pytest.raises(IngestError, match="do not name their cluster"):
        next(batches)
