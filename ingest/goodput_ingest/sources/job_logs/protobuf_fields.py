"""Reads the fields of a protobuf message whose library would bring far more than them."""

from typing import Final

LENGTHS: Final = {1: 8, 5: 4}  # of fields by wire type; 0 is a varint, 2 says its length
Fields = dict[int, list[bytes]]  # contents of a message's fields by number


def fields(data: bytes) -> Fields:
    """Return the fields of a message, a varint as 10 bytes; ValueError where it is none."""
    found: Fields = {}
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        if key & 7 == 0:
            value, at = _varint(data, at)
            found.setdefault(key >> 3, []).append(value.to_bytes(10, "little"))
            continue
        length, at = _varint(data, at) if key & 7 == 2 else (LENGTHS.get(key & 7, -1), at)
        if length < 0 or at + length > len(data):
            raise ValueError("a field is of no known type or longer than its message")
        found.setdefault(key >> 3, []).append(data[at : at + length])
        at += length
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of at most 70 bits and where it ends."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise ValueError("a number is cut")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:  # the highest bit says that more follow
            return value, at
    raise ValueError("a number is too long")
