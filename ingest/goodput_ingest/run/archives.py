"""Archives that hold recorded files (tar, plain or compressed, and zip), unpacked into a folder.

Archives are untrusted input: names may point outside the folder, a small file may unpack to a huge
one, archives may be nested. Only plain files are unpacked, below the folder, and no more bytes than
an allowance has left; every other entry is skipped with a reason, and does not affect the others.
"""

import bz2
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Self

from goodput_ingest.formats import files
from goodput_ingest.formats.json_text.json_lines import printable
from goodput_ingest.formats.packed import ALWAYS_BYTES, RATIO_MAX

TAR_MARK, TAR_MARK_AT = b"ustar", 257
ZIP_MAGIC = b"PK\x03\x04"
ZIP_SUFFIX = ".zip"  # other suffixes are other formats made of a zip: .pt, .npz, .whl
OPENERS: dict[bytes, Callable[[Path], IO[bytes]]] = {b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}
UNPACKED_MAX_BYTES = 64 << 30
MEMBERS_MAX = 20_000  # empty ones take some 2 CPU s
HEADER_MAX_BYTES = 1024 * 1024  # of a name or of extended attributes, which are held in memory
NAME_MAX_BYTES, DEPTH_MAX = 200, 30  # of a part of a path, and parts of it
COPY_BYTES = 1024 * 1024
DAMAGES = (
    *(tarfile.TarError, zipfile.BadZipFile, lzma.LZMAError, zlib.error),
    *(EOFError, OSError, ValueError, RuntimeError, NotImplementedError, OverflowError),
)


class SpentError(Exception):
    """More came out of an archive than it is allowed to hold."""


@dataclass
class Allowance:
    """How many bytes and files an archive, with the archives inside it, may still unpack to."""

    bytes_left: int
    members_left: int

    @classmethod
    def of(cls, archive: Path) -> Self:
        """Return the allowance of an archive by its size; raises OSError."""
        ratio = max(ALWAYS_BYTES, RATIO_MAX * archive.stat().st_size)
        return cls(min(ratio, UNPACKED_MAX_BYTES), MEMBERS_MAX)

    def take(self, size: int) -> None:
        """Count bytes that came out; raises SpentError."""
        self.bytes_left -= size
        if self.bytes_left < 0:
            raise SpentError(
                f"unpacks to over {RATIO_MAX} times its size or {UNPACKED_MAX_BYTES >> 30} GiB, as "
                "archives do that are made to fill disks: unpack it by hand and name the folder"
            )

    def take_member(self) -> None:
        """Count an entry; raises SpentError."""
        self.members_left -= 1
        if self.members_left < 0:
            raise SpentError(f"holds over {MEMBERS_MAX:,} entries: unpack it and name the folder")


def is_archive(path: Path, *, is_named: bool) -> bool:
    """Say whether a file is an archive by its content; is_named: a person named this very file."""
    try:
        with path.open("rb") as file:
            magic = file.read(8)
    except OSError:
        return False
    if magic.startswith(ZIP_MAGIC):
        return (is_named or path.suffix.lower() == ZIP_SUFFIX) and zipfile.is_zipfile(path)
    mark = slice(TAR_MARK_AT, TAR_MARK_AT + len(TAR_MARK))
    opener = next((o for start, o in OPENERS.items() if magic.startswith(start)), None)
    if opener is None:
        return files.head(path)[mark] == TAR_MARK
    try:
        with opener(path) as stream:
            return bool(stream.read(mark.stop)[mark] == TAR_MARK)
    except DAMAGES:
        return False


def unpack(archive: Path, folder: Path, allowance: Allowance) -> list[str]:
    """Unpack plain files into `folder`; return a sentence with the reason of each skipped entry."""
    skipped: list[str] = []
    members = _of_zip if zipfile.is_zipfile(archive) else _of_tar
    try:
        for name, content in members(archive, allowance, skipped):
            try:
                _write(folder, name, content, allowance)
            except DAMAGES as error:
                skipped.append(f"{printable(name, 200)}: cannot be unpacked ({_reason(error)}).")
    except SpentError as error:
        skipped.append(f"{error}.")
    except DAMAGES as error:
        skipped.append(f"the archive is cut or damaged ({_reason(error)}); what came before is.")
    return skipped


class _Entry(tarfile.TarInfo):
    """An entry of a tar whose names and attributes are no larger than memory may hold."""

    def _proc_member(self, tar: tarfile.TarFile) -> tarfile.TarInfo:
        is_header = self.type in {
            *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
            *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
        }
        if is_header and self.size > HEADER_MAX_BYTES:
            raise tarfile.ReadError(f"a header of {self.size:,} bytes")
        found: tarfile.TarInfo = super()._proc_member(tar)  # type: ignore[misc]
        return found


def _of_tar(
    archive: Path, allowance: Allowance, skipped: list[str]
) -> Iterator[tuple[str, IO[bytes]]]:
    with tarfile.open(archive, "r|*", tarinfo=_Entry) as tar:
        while (member := tar.next()) is not None:
            tar.members = []  # type: ignore[attr-defined] # or they would all be kept
            allowance.take_member()
            if _is_hidden(member.name) or member.isdir():
                continue
            content = tar.extractfile(member) if member.isfile() else None
            if content is None:
                skipped.append(f"{printable(member.name, 200)}: is no plain file.")
            else:
                yield member.name, content


def _of_zip(
    archive: Path, allowance: Allowance, skipped: list[str]
) -> Iterator[tuple[str, IO[bytes]]]:
    with zipfile.ZipFile(archive) as opened:
        for member in opened.infolist():
            allowance.take_member()
            if _is_hidden(member.filename) or member.is_dir():
                continue
            try:
                with opened.open(member) as content:
                    yield member.filename, content
            except DAMAGES as error:
                shown = printable(member.filename, 200)
                skipped.append(f"{shown}: cannot be unpacked ({_reason(error)}).")


def _is_hidden(name: str) -> bool:
    parts = PurePosixPath(name).parts
    return bool(parts) and (parts[-1].startswith(".") or "__MACOSX" in parts)


def _write(folder: Path, name: str, content: IO[bytes], allowance: Allowance) -> None:
    """Write a file below the folder; raises ValueError for a name that leads out of it."""
    parts = [part for part in PurePosixPath(name).parts if part != "/"]
    if ".." in parts or "\x00" in name or not parts:
        raise ValueError("its name leads out of the archive")
    if len(parts) > DEPTH_MAX or any(
        len(p.encode("utf-8", "replace")) > NAME_MAX_BYTES for p in parts
    ):
        raise ValueError("its name is too long")
    target = folder.joinpath(*parts)
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as file:
        while chunk := content.read(COPY_BYTES):
            allowance.take(len(chunk))
            file.write(chunk)


def _reason(error: BaseException) -> str:
    return str(error).rstrip(".") or type(error).__name__
