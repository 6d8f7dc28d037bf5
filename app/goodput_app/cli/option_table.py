"""Options of commands as `options.toml` has them: their names, their help, what they take."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

Command = TypeVar("Command", bound="Callable[..., Any]")


@cache
def _options() -> dict[str, dict[str, dict[str, Any]]]:
    return tomllib.loads(Path(__file__).with_name("options.toml").read_text(encoding="utf-8"))


def option(name: str, **more: Any) -> Callable[[Command], Command]:
    """Return an option, such as `ingest.node`. more: what is no text of it, as click takes it."""
    module, _, of_module = name.partition(".")
    of = _options()[module][of_module]
    texts = {key: value for key, value in of.items() if key != "names"}
    return click.option(*of["names"], **texts, **more)
