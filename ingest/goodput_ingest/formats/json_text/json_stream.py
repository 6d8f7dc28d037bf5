"""A JSON document larger than memory: its top-level arrays are read an element at a time."""

import codecs
import itertools
import json
from collections.abc import Collection, Iterator
from typing import IO, Any

from goodput_ingest.formats import files

WHITESPACE = " \t\r\n"
VALUE_MAX_CHARS = 16 * 1024 * 1024
_DECODER = json.JSONDecoder()


class BrokenDocumentError(ValueError):
    """The document is cut, damaged or no JSON from here on; the text says what and where."""


def items(file: IO[bytes], arrays: Collection[str]) -> Iterator[tuple[str, Any]]:
    """Yield (key, value) of a document that is an object; of keys in `arrays`, once an element.

    What was read is yielded before BrokenDocumentError says that the rest cannot be.
    """
    text = _Text(file)
    yield from _items(text, arrays)
    if text.has_more():
        raise BrokenDocumentError(f"more follows the end of the document {text.where()}")


def documents(file: IO[bytes], arrays: Collection[str]) -> Iterator[tuple[int, str, Any]]:
    """Yield (number, key, value) of objects that follow each other, numbered from 1.

    Arrays and errors are those of `items`.
    """
    text = _Text(file)
    for number in itertools.count(1):
        if not text.has_more():
            return
        yield from ((number, key, value) for key, value in _items(text, arrays))


def _items(text: "_Text", arrays: Collection[str]) -> Iterator[tuple[str, Any]]:
    text.expect("{")
    while text.peek() != "}":
        key = text.value()
        if not isinstance(key, str):
            raise BrokenDocumentError(f"a key is missing {text.where()}")
        text.expect(":")
        if key in arrays and text.peek() == "[":
            text.expect("[")
            while text.peek() != "]":
                yield key, text.value()
                if text.peek() != "]":
                    text.expect(",")
            text.expect("]")
        else:
            yield key, text.value()
        if text.peek() != "}":
            text.expect(",")
    text.expect("}")


class _Text:
    """The document as far as it was read: what is before `_at` was used up."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decode = codecs.getincrementaldecoder("utf-8-sig")(files.WINDOWS).decode
        self._text = ""
        self._at = 0
        self._before = 0  # characters that were dropped
        self._is_over = False

    def where(self) -> str:
        """Return where the reading stands, in words."""
        return f"at character {self._before + self._at + 1}"

    def peek(self) -> str:
        """Return the next character that is not white space."""
        if not self.has_more():
            raise BrokenDocumentError(f"the document is cut {self.where()}")
        return self._text[self._at]

    def has_more(self) -> bool:
        """Pass over white space; return whether a character follows."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in WHITESPACE:
                self._at += 1
            if self._at < len(self._text):
                return True
            if not self._more():
                return False

    def expect(self, character: str) -> None:
        """Pass over this character; anything else is an error."""
        if (found := self.peek()) != character:
            raise BrokenDocumentError(f"{found!r} where {character!r} is expected {self.where()}")
        self._at += 1

    def value(self) -> Any:
        """Return the next value, which may be as long as VALUE_MAX_CHARS."""
        self.peek()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except RecursionError:
                raise BrokenDocumentError(f"a value is nested too deeply {self.where()}") from None
            except ValueError as error:
                if len(self._text) - self._at > VALUE_MAX_CHARS:
                    raise BrokenDocumentError(f"a value is too long {self.where()}") from error
                if not self._more():
                    reason = f"a value is cut or no JSON {self.where()}"
                    raise BrokenDocumentError(reason) from error
            else:
                if end < len(self._text) or not self._more():  # a number may go on
                    self._at = end
                    return value

    def _more(self) -> bool:
        """Read on, dropping what was used up; return whether there was more."""
        if self._is_over:
            return False
        # as much again as is there: a long value is tried a few times, not once a chunk
        wanted = max(files.CHUNK_BYTES, len(self._text) - self._at)
        pieces, size = list[bytes](), 0
        try:
            while size < wanted and (piece := self._file.read1(wanted - size)):  # type: ignore[attr-defined]
                pieces.append(piece)
                size += len(piece)
        except files.BROKEN_OFF:
            pass  # a truncated gzip stream: the parser reports the missing end
        data = b"".join(pieces)
        self._is_over = not data
        self._before += self._at
        self._text = self._text[self._at :] + self._decode(data, self._is_over)
        self._at = 0
        return not self._is_over
