"""What is wrong in a settings file, in its own words: from the messages of msgspec."""

import re
from types import NoneType
from typing import Any, get_args

import msgspec
from msgspec import structs

from goodput_app.access.settings import Member, Token
from goodput_messages.targets import KINDS
from goodput_queries.objectives.goodput import Objective
from goodput_queries.objectives.serving import ServingObjective

WORDS = {  # by what msgspec calls a type
    "str": "a text in quotes",
    "int": "a whole number",
    "bool": "true or false",
    "float": "a number",
    "array": "a list of texts in quotes",
}
TABLE = "a table of texts in quotes"
WRONG_KIND = re.compile(r"Expected `(\w+)(?: \| null)?`, got `\w+`")
UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)


def explained(error: str, given: dict[str, Any], settings: type[msgspec.Struct]) -> str:
    """Return a message of msgspec in the words of a settings file: the key with its section."""
    text, _, place = error.partition(" - at `$")
    keys = [key for key in place.rstrip("`").partition("[")[0].split(".") if key]
    where = ".".join(keys)
    if keys == ["notify"]:
        return _of_notify(text, place, given["notify"])
    if keys == ["serving", "objectives"]:
        return _of_tables("serving.objectives", ServingObjective, text, place)
    if unknown := UNKNOWN.fullmatch(text):
        prefix = f"{where}." if keys else ""
        known = ", ".join(f"{prefix}{field.name}" for field in _known(settings, keys))
        return f"there is no setting '{prefix}{unknown[1]}'; known: {known}."
    if keys == ["collect"]:
        return "'collect' is a list; write each source as [[collect]]."
    if keys == ["objectives"]:
        return _of_objectives(text, place)
    if keys == ["access", "members"]:
        return _of_tables("access.members", Member, text, place)
    if keys == ["access", "tokens"]:
        return _of_tables("access.tokens", Token, text, place)
    value: Any = given
    for key in keys:
        value = value[key]
    expected = WRONG_KIND.fullmatch(text)
    if expected is None or expected[1] == "object":
        return f"{where!r} is a section; write it as [{where}]."
    words = WORDS["array" if "[" in place else expected[1]]  # at an element: of the list
    if isinstance(value, dict):
        words = TABLE
    return f"{where!r} is {value!r}, expected {words}."


def _of_objectives(error: str, place: str) -> str:
    """Return what is wrong with one of the objectives. place: where msgspec found it."""
    if "missing required field" in error:
        return "an [[objectives]] table needs 'target', such as 0.6."
    return _of_tables("objectives", Objective, error, place)


def _of_tables(name: str, kind: type[msgspec.Struct], error: str, place: str) -> str:
    """Return what is wrong with one table of a list of them."""
    key = place.rstrip("`").rpartition("].")[2].partition("[")[0]
    if unknown := UNKNOWN.fullmatch(error):
        known = ", ".join(f"{name}.{field}" for field in kind.__struct_fields__)
        return f"there is no setting '{name}.{unknown[1]}'; known: {known}."
    expected = WRONG_KIND.fullmatch(error)
    if "[" not in place or expected is None or expected[1] == "object":
        one = name.rpartition(".")[2].removesuffix("s")
        return f"'{name}' is a list; write each {one} as [[{name}]]."
    is_of_list = place.rstrip("`").endswith("]") and "]." in place
    return f"'{name}.{key}' is not {WORDS['array' if is_of_list else expected[1]]}."


def _of_notify(error: str, place: str, given: Any) -> str:
    """Return what is wrong with one of the targets of notifications."""
    number = re.search(r"\[(\d+)\]", place)
    if number is None or not isinstance(given, list):
        return "'notify' is a list; write each target as [[notify]]."
    table = given[int(number[1])]
    kind = table.get("to") if isinstance(table, dict) else None
    if not isinstance(kind, str) or kind not in KINDS:
        return f"'notify.to' is {kind!r}, expected one of {', '.join(KINDS)}."
    if unknown := UNKNOWN.fullmatch(error):
        known = ", ".join(KINDS[kind].__struct_fields__)
        return f"there is no setting 'notify.{unknown[1]}' for {kind!r}; known: {known}."
    key = place.rstrip("`").partition("].")[2].partition("[")[0]
    expected = WRONG_KIND.fullmatch(error)
    if expected is None or expected[1] == "object":
        return f"'notify.{key}' is a table; write it as [notify.{key}]."
    words = WORDS["array" if "[" in place.partition("].")[2] else expected[1]]
    if isinstance(table[key], dict):
        words = TABLE
    return f"'notify.{key}' is {table[key]!r}, expected {words}."


def _known(settings: type[msgspec.Struct], keys: list[str]) -> tuple[structs.FieldInfo, ...]:
    """Return the names of the settings in a section."""
    kind: Any = settings
    for key in keys:
        declared = next(field.type for field in structs.fields(kind) if field.name == key)
        kind = next((one for one in get_args(declared) if one is not NoneType), declared)
    return structs.fields(kind)
