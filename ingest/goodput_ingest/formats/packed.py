"""What is in files packed by gzip, bzip2, xz, zstd or lz4, which are known by their first bytes."""

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import cast

MAGIC_BYTES = 6  # of the longest
# how much what is packed may hold: logs of one kind of line over and over shrink to a hundredth
RATIO_MAX, ALWAYS_BYTES = 200, 256 * 1024 * 1024
READ_BYTES = 1 << 16
XZ_MEMORY_MAX_BYTES = 128 << 20  # xz -9 needs 65 MiB; a header may ask for gigabytes
# what a cut or damaged stream raises
BROKEN_OFF = (EOFError, OSError, zlib.error, lzma.LZMAError)


class _Xz(RawIOBase):
    """What an xz file holds, its streams one after the other."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._stream = _xz_stream()
        self._begun = b""  # of a stream that follows
        self._damage: lzma.LZMAError | None = None  # raised by each read from then on

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # a BufferedReader asks
        data = b""
        while not data:
            if self._stream.eof and not self._begins_again():
                break
            piece, self._begun = self._begun, b""
            if self._damage is None and self._stream.needs_input and not piece:
                piece = self._file.read(READ_BYTES)
                if not piece:
                    raise EOFError("the xz stream ends before its mark of the end")
            data = self._decompressed(piece, len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _decompressed(self, piece: bytes, size: int) -> bytes:
        if self._damage is None:
            try:
                return self._stream.decompress(piece, size)
            except lzma.LZMAError as error:
                self._damage = error
        raise self._damage

    def _begins_again(self) -> bool:
        """Say whether a stream follows the one that has ended; zeros between them say nothing."""
        begun = self._stream.unused_data.lstrip(b"\x00")
        while not begun and (piece := self._file.read(READ_BYTES)):
            begun = piece.lstrip(b"\x00")
        self._begun, self._stream = begun, _xz_stream() if begun else self._stream
        return bool(begun)

    def close(self) -> None:
        self._file.close()
        super().close()


def _xz_stream() -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY_MAX_BYTES)


def _by_arrow(name: str) -> Callable[[Path], BufferedReader]:
    def opened(path: Path) -> BufferedReader:
        import pyarrow as pa  # noqa: PLC0415 -- few files are packed so, and it takes a while

        return BufferedReader(pa.CompressedInputStream(str(path), name))

    return opened


# first bytes -> what opens a file that begins so
OPENERS: dict[bytes, Callable[[Path], object]] = {
    b"\x1f\x8b": gzip.GzipFile,
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\x00": lambda path: BufferedReader(_Xz(path)),
    b"\x28\xb5\x2f\xfd": _by_arrow("zstd"),
    b"\x04\x22\x4d\x18": _by_arrow("lz4"),
}


def opener(magic: bytes) -> Callable[[Path], BufferedReader] | None:
    """Return what opens a file with these first bytes; None where it is not packed."""
    found = next((OPENERS[first] for first in OPENERS if magic.startswith(first)), None)
    return cast("Callable[[Path], BufferedReader] | None", found)
