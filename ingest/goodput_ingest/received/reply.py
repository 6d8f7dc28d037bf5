"""What a sender is answered, and bodies that are unpacked up to a limit."""

import zlib
from dataclasses import dataclass, field

from goodput_queries.errors import IngestError

RETRY_AFTER_S = 5


@dataclass(frozen=True)
class Reply:
    """An answer of HTTP."""

    status: int
    body: bytes = b""
    content_type: str | None = None
    headers: dict[str, str] = field(default_factory=dict)


class RefusedError(IngestError):
    """A request that is not taken. status: of HTTP; 503 is to be sent again, others are not."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def gunzipped(body: bytes, max_bytes: int) -> bytes:
    """Return the text of gzip; raises RefusedError where it is none or longer than allowed."""
    unpacker = zlib.decompressobj(wbits=31)
    try:
        found = unpacker.decompress(body, max_bytes + 1)
    except zlib.error as error:
        raise RefusedError(400, f"the body is not gzip ({error}).") from error
    if len(found) > max_bytes:
        raise too_long(max_bytes)
    if not unpacker.eof:
        raise RefusedError(400, "the body is cut: its gzip has no end.")
    return found


def too_long(max_bytes: int) -> RefusedError:
    """Return the refusal of a body that is longer than allowed."""
    return RefusedError(
        413, f"a request has at most {max_bytes} bytes unpacked; send smaller ones."
    )
