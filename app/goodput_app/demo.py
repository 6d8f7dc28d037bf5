"""`goodput demo`: the recorded session and a made-up fleet as a database, built once and cached."""

from __future__ import annotations

import hashlib
import os
import tempfile
import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from goodput_ingest import synthetic
from goodput_ingest.run import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries.errors import GoodputError, StoreError
from goodput_queries.storage.remote import find_server
from goodput_queries.storage.schema import catalog_digest
from goodput_queries.storage.store import LocalStore

if TYPE_CHECKING:
    from collections.abc import Callable

RECIPE = "demo.toml"
FLEET_SEED = 7
FLEET_HOURS = 72
FLEET_START = datetime(
    2026, 11, 17, 12, tzinfo=UTC
)  # three days that end with the recorded session
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
    gpus: int = 0,
    on_progress: Callable[[Path, int], None] = lambda _path, _rows: None,
) -> Path:
    """Return the demo database, built first where data or SQL changed since it was.

    Beside the sample data it holds a made-up fleet of that many GPUs over three days (0: none). It
    appears under its name only when it is whole. Raises GoodputError without sample data.
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
    target = folder / f"demo-{digest(source, gpus)}.duckdb"
    if not target.exists():
        draft = folder / f"draft-{os.getpid()}.duckdb"
        _discard(draft)
        try:
            _fill(draft, steps, gpus, on_progress)
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


def digest(sample_data: Path, gpus: int = 0) -> str:
    """Return a digest of data, generator and SQL: the demo is rebuilt when one changes."""
    text = hashlib.blake2b(f"{catalog_digest()} {gpus}".encode(), digest_size=8)
    if gpus:
        for module in sorted(Path(synthetic.__file__).parent.glob("*.py")):
            text.update(module.read_bytes())
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


def _fill(
    path: Path, steps: list[Step], gpus: int, on_progress: Callable[[Path, int], None]
) -> None:
    store = LocalStore(path)
    try:
        with tempfile.TemporaryDirectory(dir=path.parent, prefix="fleet-") as fleet:
            if gpus:
                # the sample's rate card comes last: of two prices for one model the later holds
                steps = [*_made_up(Path(fleet), gpus), *steps]
            for step in steps:
                ingest.ingest(
                    store, step.source, [step.path], step.options, on_progress=on_progress
                )
        store.build()
    finally:
        store.close()


def _made_up(folder: Path, gpus: int) -> list[Step]:
    try:
        synthetic.generate(folder, gpus=gpus, hours=FLEET_HOURS, seed=FLEET_SEED, start=FLEET_START)
    except ValueError as error:
        raise GoodputError(f"--gpus {gpus}: {error}.") from error
    return recipe(folder)


def _discard(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.with_name(f"{path.name}.wal").unlink(missing_ok=True)
