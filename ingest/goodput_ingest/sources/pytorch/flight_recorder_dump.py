"""A Flight Recorder dump from bytes: JSON, or a pickle of built-in values and no code."""

import io
import json
import pickle
import pickletools
from collections.abc import Iterator
from typing import Any, NoReturn

from goodput_ingest.formats.json_text.json_lines import FieldError, kind

PICKLE_START = b"\x80"
# what a dump is made of; an opcode outside it (GLOBAL, REDUCE, BUILD, PERSID ...) can run code or
# make objects, and none is needed for numbers, texts, lists and dictionaries
HARMLESS = frozenset(
    {
        *("PROTO", "FRAME", "STOP", "MARK", "POP", "POP_MARK", "NONE", "NEWTRUE", "NEWFALSE"),
        *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "FLOAT", "BINFLOAT"),
        *("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
        *("STRING", "BINSTRING", "SHORT_BINSTRING"),
        *("EMPTY_LIST", "LIST", "APPEND", "APPENDS"),
        *("EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"),
        *("EMPTY_DICT", "DICT", "SETITEM", "SETITEMS"),
        *("GET", "BINGET", "LONG_BINGET", "PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"),
    }
)
OPCODES_MAX = 20_000_000  # a ring of 20,000 entries has some 1.2 million


class _BuiltInsOnly(pickle.Unpickler):
    """The unpickler of last resort: even an opcode that slipped through finds no class."""

    def find_class(self, module: str, name: str) -> NoReturn:
        """Refuse every class and function."""
        raise FieldError(
            f"the pickle asks for {module[:50]}.{name[:50]}: only built-in values are read"
        )

    def persistent_load(self, pid: Any) -> NoReturn:  # noqa: ARG002 -- the name is pickle's
        """Refuse references to the outside."""
        raise FieldError("the pickle refers to something outside itself")


def load(content: bytes) -> dict[str, Any]:
    """Return the dump; raises FieldError for whatever is not one."""
    value = _unpickled(content) if content.startswith(PICKLE_START) else _parsed(content)
    if not isinstance(value, dict):
        raise FieldError(f"the dump is {kind(value)}, expected an object")
    if not isinstance(value.get("pg_config"), dict):
        raise FieldError("the dump has no pg_config")
    return value


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content)
    except RecursionError:
        raise FieldError("the JSON is nested too deeply") from None
    except ValueError as error:
        raise FieldError(f"the dump is cut or not JSON ({str(error)[:100]})") from None


def _unpickled(content: bytes) -> Any:
    """Load a pickle after every opcode of it was found harmless."""
    try:
        for name in _opcodes(content):
            if name not in HARMLESS:
                raise FieldError(f"the pickle has {name}: only built-in values are read")
        return _BuiltInsOnly(io.BytesIO(content)).load()
    except FieldError:
        raise
    except (RecursionError, MemoryError, OverflowError):
        raise FieldError("the pickle is too large or nested too deeply") from None
    except Exception as error:  # a broken pickle raises nearly anything
        raise FieldError(f"the pickle is cut or broken ({type(error).__name__})") from None


def _opcodes(content: bytes) -> Iterator[str]:
    for count, (opcode, argument, _) in enumerate(pickletools.genops(content)):
        is_huge = opcode.name in {"LONG_BINPUT", "PUT"} and int(argument or 0) > OPCODES_MAX
        if count > OPCODES_MAX or is_huge:  # the memo is an array: a far index takes memory
            raise FieldError("the pickle is too large")
        yield opcode.name
