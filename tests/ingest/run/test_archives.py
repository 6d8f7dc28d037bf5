"""Files that come in archives: what is in them is read, and nothing else happens."""

import gzip
import io
import json
import tarfile
import zipfile

import pytest
from tests.ingest.golden_cases import golden_path

from goodput_ingest.run import archives
from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions

START = 1_700_000_000


def events(run):
    event = {"v": 1, "run_id": run, "rank": 0, "host": "a"}
    reported = [{"ts": START, "event": "job.start"}, {"ts": START + 1, "event": "job.end"}]
    return "".join(json.dumps(event | one) + "\n" for one in reported).encode()


def archived(path, files):
    """Write an archive, a zip unless its name says that it is a tar."""
    _, tar, packing = path.name.partition(".tar")
    if not tar:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            for name, content in files.items():
                file.writestr(name, content)
        return path
    with tarfile.open(path, f"w:{packing.removeprefix('.')}") as file:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            file.addfile(entry, io.BytesIO(content))
    return path


def read(store, *paths):
    return ingest(store, "auto", paths, ReadOptions())


def runs(store):
    return store.read("select distinct run_id from raw.job_events order by all")["run_id"].to_list()


@pytest.mark.parametrize("suffix", ["tar", "tar.gz", "tar.bz2", "tar.xz", "zip"])
@pytest.mark.parametrize("is_in_folder", [True, False])
def test_every_file_of_an_archive_is_read(store, tmp_path, suffix, *, is_in_folder):
    inside = {"a/one.jsonl": events("one"), "b/two.jsonl.gz": gzip.compress(events("two"))}
    path = archived(tmp_path / f"logs.{suffix}", inside)

    found = read(store, tmp_path if is_in_folder else path)

    assert (found.files, found.refused, found.unrecognised) == (2, [], [])
    assert runs(store) == ["one", "two"]
    origins = store.read("select distinct origin from state.ingested order by all")["origin"]
    assert origins.to_list() == [f"{path}/a/one.jsonl", f"{path}/b/two.jsonl.gz"]


def test_an_archive_that_was_read_from_its_folder_is_a_repeat(store, tmp_path):
    (tmp_path / "one.jsonl").write_bytes(events("one"))
    read(store, tmp_path)
    archive = archived(tmp_path / "logs.tar", {"one.jsonl": events("one")})

    found = read(store, archive, archive)

    assert (found.files, found.repeats, found.rows_new) == (2, 4, 0)


def test_archives_in_archives_are_opened_to_a_depth(store, tmp_path):
    inner = archived(tmp_path / "0.tar.gz", {"one.jsonl": events("one")})
    for depth in range(1, 5):
        outer = archived(tmp_path / f"{depth}.zip", {inner.name: inner.read_bytes()})
        inner.unlink()
        inner = outer
        found = read(store, inner)
        assert found.files == (1 if depth < 3 else 0)

    assert "archives lie 3 deep in one another at most" in found.refused[0]


@pytest.mark.parametrize("name", ["../outside.jsonl", "a/../../outside.jsonl", "/outside.jsonl"])
@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_a_name_that_leads_out_of_the_archive_writes_nothing_outside(tmp_path, kind, name):
    inside = {name: events("evil"), "good.jsonl": events("good")}
    archive = archived(tmp_path / f"x.{kind}", inside)
    folder = tmp_path / "deep" / "folder"
    folder.mkdir(parents=True)

    skipped = archives.unpack(archive, folder, archives.Allowance.of(archive))

    written = {p.relative_to(tmp_path) for p in tmp_path.rglob("*.jsonl")}
    assert all(p.is_relative_to("deep/folder") for p in written)
    assert folder.joinpath("good.jsonl").exists()
    assert name.startswith("/") or "leads out of the archive" in skipped[0]


def test_links_and_devices_are_left_out_with_a_reason(store, tmp_path):
    path = tmp_path / "x.tar"
    kinds = (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE)
    with tarfile.open(path, "w") as tar:
        for number, kind in enumerate(kinds):
            entry = tarfile.TarInfo(f"{number}")
            entry.type, entry.linkname = kind, "/etc/passwd"
            tar.addfile(entry)

    found = read(store, path)

    assert [reason.rpartition("/")[2] for reason in found.refused] == [
        f"x.tar: {number}: is no plain file." for number in range(len(kinds))
    ]


@pytest.mark.parametrize("kind", ["tar.gz", "zip"])
def test_a_small_archive_that_unpacks_to_a_huge_file_is_stopped(tmp_path, monkeypatch, kind, store):
    monkeypatch.setattr(archives, "ALWAYS_BYTES", 1_000_000)
    inside = {"one.jsonl": events("one"), "zeros": bytes(40_000_000)}
    path = archived(tmp_path / f"bomb.{kind}", inside)

    found = read(store, path)

    assert runs(store) == ["one"]
    assert "unpacks to over 200 times its size" in found.refused[0]


def test_bombs_in_bombs_share_one_allowance(tmp_path, monkeypatch, store):
    monkeypatch.setattr(archives, "ALWAYS_BYTES", 3_000_000)
    bomb = archived(tmp_path / "b", {"zeros": bytes(2_000_000)}).read_bytes()
    path = archived(tmp_path / "many.zip", {f"{i}.zip": bomb for i in range(5)})

    assert len([reason for reason in read(store, path).refused if "200 times" in reason]) >= 3
    monkeypatch.setattr(archives, "MEMBERS_MAX", 1)
    assert "holds over 1 entries" in read(store, path).refused[-1]


def test_a_tar_whose_header_would_fill_the_memory_is_refused(tmp_path, store):
    path = tmp_path / "x.tar"
    with tarfile.open(path, "w") as tar:
        entry = tarfile.TarInfo("././@LongLink")
        entry.type, entry.size = tarfile.GNUTYPE_LONGNAME, 5_000_000
        tar.addfile(entry, io.BytesIO(b"x" * 5_000_000))

    assert "a header of 5,000,000 bytes" in read(store, path).refused[0]


@pytest.mark.parametrize("kind", ["tar", "tar.gz"])
def test_a_cut_archive_gives_the_files_before_the_cut(tmp_path, store, kind):
    noise = bytes(range(256)) * 4_000
    inside = {"one.jsonl": events("one"), "noise": noise, "two.jsonl": events("two")}
    path = archived(tmp_path / f"x.{kind}", inside)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])

    found = read(store, path)

    assert runs(store) == ["one"]
    assert any("cut or damaged" in r or "cannot be unpacked" in r for r in found.refused)


def test_one_bad_file_of_an_archive_costs_no_other(tmp_path, store):
    path = archived(tmp_path / "x.zip", {"a.jsonl": events("one"), "b.jsonl": events("two")})
    content = bytearray(path.read_bytes())
    at = content.index(b"a.jsonl") + len("a.jsonl") + 4
    content[at : at + 8] = b"\xff" * 8
    path.write_bytes(content)

    found = read(store, path)

    assert runs(store) == ["two"]
    assert "a.jsonl: cannot be unpacked" in found.refused[0]


def test_a_file_that_is_a_zip_by_another_name_is_not_opened_in_a_folder(tmp_path, store):
    """A saved model is one, of many gigabytes."""
    path = archived(tmp_path / "model.pt", {"a.jsonl": events("one")})

    assert read(store, tmp_path).unrecognised == [str(path)]
    assert read(store, path).files == 1


def test_a_run_is_named_by_the_archive_its_files_lie_in(tmp_path, store):
    """Never by the folder that they are unpacked to for a moment."""
    (log,) = golden_path("torchtitan_structured").glob("one_rank*/input.*")
    name = "structured_logs/training.global_rank_0.20270115-abc.jsonl"
    path = archived(tmp_path / "run7.tar.gz", {name: log.read_bytes()})

    found = read(store, path)

    assert (found.files, found.refused, found.unrecognised) == (1, [], [])
    assert runs(store) == ["run7"]


def test_the_member_is_named_in_its_messages(tmp_path, store):
    said = {"a.jsonl": events("one") + b'{"v": 1, "event": "step"}\n', "what": b"\x00\x01"}
    path = archived(tmp_path / "x.tar.gz", said)
    assert read(store, path).unrecognised == [f"{path}/what"]
    assert store.read("select origin, line from raw.rejects").rows() == [(f"{path}/a.jsonl", 3)]
