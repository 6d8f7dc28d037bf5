"""`goodput demo`: the sample data as a database, built once and kept in the user's cache."""

from __future__ import annotations

import hashlib
import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from goodput_ingest import load
from goodput_ingest.source import ReadOptions
from goodput_queries.errors import GoodputError, StoreError
from goodput_queries.remote import find_server
from goodput_queries.store import LocalStore, catalog_digest

if TYPE_CHECKING:
    from collections.abc import Callable

RECIPE = "demo.toml"
_PACKAGED = Path(__file__).with_name("sample_data")
_CHECKOUT = Path(__file__).parents[2] / "sample_data"
_KEYS = {"path", "source", "cluster", "timezone", "observed_at"}


@dataclass(frozen=True)
class Step:
    """One line of the recipe: a path in the sample data, its source and what it does not say."""

    path: Path
    source: str
    options: ReadOptions


def demo_database(
    folder: Path | None = None,
    *,
    sample_data: Path | None = None,
    on_progress: Callable[[Path, int], None] = lambda _path, _rows: None,
) -> Path:
    """Return the demo database, built first where data or SQL changed since it was.

    It appears under its name only when it is whole. Raises GoodputError without sample data.
    """
    source = sample_data or (_PACKAGED if _PACKAGED.is_dir() else _CHECKOUT)
    steps = recipe(source)
    folder = folder or cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"{folder}: the demo cannot be kept there ({error.strerror}). Name another --dir."
        ) from error
    target = folder / f"demo-{digest(source)}.duckdb"
    if not target.exists():
        draft = folder / f"draft-{os.getpid()}.duckdb"
        _discard(draft)
        try:
            _fill(draft, steps, on_progress)
            draft.replace(target)
        finally:
            _discard(draft)
        for old in folder.glob("demo-*.duckdb"):
            if old != target and find_server(old) is None:
                _discard(old)
    return target


def recipe(sample_data: Path) -> list[Step]:
    """Return the steps that `demo.toml` lists; raises GoodputError naming what is wrong there."""
    path = sample_data / RECIPE
    try:
        lines = tomllib.loads(path.read_text(encoding="utf-8"))["ingest"]
        return [_step(sample_data, line) for line in lines]
    except OSError as error:
        raise GoodputError(
            f"{path}: the sample data cannot be read ({error.strerror}). Install goodput again."
        ) from error
    except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError) as error:
        raise GoodputError(
            f"{path}: this is no list of [[ingest]] with path, source, cluster ({error})."
        ) from error


def digest(sample_data: Path) -> str:
    """Return a digest of the sample data and of all SQL: the demo is rebuilt when it changes."""
    text = hashlib.blake2b(catalog_digest().encode(), digest_size=8)
    for path in sorted(p for p in sample_data.rglob("*") if p.is_file()):
        content = path.read_bytes()
        text.update(f"{path.relative_to(sample_data)} {len(content)} ".encode())
        text.update(content)
    return text.hexdigest()


def cache_folder() -> Path:
    """Return where the demo database is kept: `$XDG_CACHE_HOME/goodput/demo`."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "goodput" / "demo"


def _step(sample_data: Path, line: dict[str, Any]) -> Step:
    if unknown := line.keys() - _KEYS:
        raise ValueError(f"unknown key {min(unknown)!r}")
    zone = line.get("timezone")
    options = ReadOptions(
        cluster=line.get("cluster"),
        zone=None if zone is None else ZoneInfo(zone),
        observed_at=line.get("observed_at"),
    )
    return Step(sample_data / line["path"], line.get("source", "auto"), options)


def _fill(path: Path, steps: list[Step], on_progress: Callable[[Path, int], None]) -> None:
    store = LocalStore(path)
    try:
        for step in steps:
            load.ingest(store, step.source, [step.path], step.options, on_progress=on_progress)
        store.build()
    finally:
        store.close()


def _discard(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.with_name(f"{path.name}.wal").unlink(missing_ok=True)
