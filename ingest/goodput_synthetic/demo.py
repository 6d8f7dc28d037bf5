"""`goodput demo`: recorded session and synthetic fleet as a database, built once, cached."""

import hashlib
import os
import tempfile
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import goodput_app
from goodput_ingest.live.config import Collector
from goodput_ingest.run import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries.database import LocalStore
from goodput_queries.errors import GoodputError, StoreError, stated
from goodput_queries.evidence import retention
from goodput_queries.remote import find_server
from goodput_queries.storage.schema import catalog_digest
from goodput_queries.storage.template import cache_folder
from goodput_synthetic import fleet as fleets
from goodput_synthetic.fleet.live import feeds
from goodput_synthetic.fleet.plans import shown
from goodput_synthetic.fleet.world import World
from goodput_synthetic.serving import site

RECIPE = "demo.toml"
FLEET_GPUS, FLEET_SEED = 512, 7
FLEET_HOURS = 72
SERVING_HOURS = 24  # the last of them: what the serving engines beside the fleet are made for
INTERVAL_S = 30  # between readings of a GPU
WEEKS = "atlas"  # in the sample data: what is left of the weeks before, of a fleet of FLEET_GPUS
FLEET_START = datetime(
    2026, 11, 17, 12, tzinfo=UTC
)  # three days that end with the recorded session
LIVE_HOURS = 24  # that the clock of a live demo runs before it is made again
_PACKAGED = Path(goodput_app.__file__).with_name("sample_data")
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

    Beside the sample data it holds a made-up fleet of that many GPUs over three days, and a node
    that serves a model (0: neither); of a fleet of FLEET_GPUS also the archived hours of the five
    weeks before. It appears under its name only when it is whole. Raises GoodputError without
    sample data.
    """
    source = sample_data or _sample_data()
    steps = recipe(source)
    folder = folder or cache_folder() / "demo"
    _make(folder)
    target = folder / f"demo-{digest(source, gpus)}.duckdb"

    def fill(draft: Path) -> None:
        with tempfile.TemporaryDirectory(dir=folder, prefix="fleet-") as fleet:
            # the sample's rate card comes last: of two prices for one model the later holds
            made_up = _made_up(Path(fleet), gpus) if gpus else []
            weeks = sorted((source / WEEKS).glob("week-*")) if gpus == FLEET_GPUS else []
            of_weeks = [step for week in weeks for step in recipe(week)]
            _fill(draft, [*of_weeks, *made_up, *steps], on_progress, weeks)

    if not target.exists():
        _whole(target, fill)
        for old in folder.glob("demo-*.duckdb"):
            if old != target and find_server(old) is None:
                _discard(old)
    return target


def live_demo(
    folder: Path | None = None,
    *,
    gpus: int,
    now: datetime | None = None,
    on_progress: Callable[[Path, int], None] = lambda _path, _rows: None,
) -> tuple[Path, list[Collector]]:
    """Return a database of a made-up fleet whose history ends now, and the sources of what follows.

    One that was made less than LIVE_HOURS ago goes on where it was left. Raises GoodputError for a
    fleet that cannot be.
    """
    now = now or datetime.now(UTC)
    folder = folder or cache_folder() / "demo"
    prefix = f"live-{digest(_sample_data(), gpus)}"
    _make(folder)
    for path in sorted(folder.glob("live-*.duckdb")):
        made, _, ended = path.stem.rpartition("-")
        ends = datetime.fromtimestamp(int(ended), UTC) if ended.isdecimal() else now
        if made == prefix and timedelta() <= now - ends < timedelta(hours=LIVE_HOURS):
            return path, _live(gpus, ends)[1]
        if find_server(path) is None:
            _discard(path)
    ends_s = int(now.timestamp()) // INTERVAL_S * INTERVAL_S  # where no reading is under way
    world, sources = _live(gpus, datetime.fromtimestamp(ends_s, UTC))
    target = folder / f"{prefix}-{ends_s}.duckdb"

    def fill(draft: Path) -> None:
        with tempfile.TemporaryDirectory(dir=folder, prefix="fleet-") as fleet:
            fleets.write_known(Path(fleet), world, ends_s - world.start_s)
            _fill(draft, recipe(Path(fleet)), on_progress)

    _whole(target, fill)
    return target, sources


def _live(gpus: int, ends: datetime) -> tuple[World, list[Collector]]:
    """Return the fleet whose history ends then, with its sources from then on."""
    start = ends.replace(minute=0, second=0, microsecond=0) - timedelta(hours=FLEET_HOURS)
    known_s = int(ends.timestamp()) - int(start.timestamp())
    try:
        world = fleets.imagine(
            gpus=gpus, hours=FLEET_HOURS + 1 + LIVE_HOURS, seed=FLEET_SEED, start=start,
            interval_s=INTERVAL_S, live_from_s=known_s,
        )  # fmt: skip
    except ValueError as error:
        raise GoodputError(f"--gpus {gpus}: {error}.") from error
    return world, feeds(world, known_s)


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
            f"{path}: this is not a list of [[ingest]] with path, source, cluster ({error})."
        ) from error


def digest(sample_data: Path, gpus: int = 0) -> str:
    """Return a digest of data, generator and SQL: the demo is rebuilt when one changes."""
    text = hashlib.blake2b(f"{catalog_digest()} {gpus}".encode(), digest_size=8)
    if gpus:
        for module in sorted(Path(__file__).parent.rglob("*.py")):
            text.update(module.read_bytes())
    for path in sorted(p for p in sample_data.rglob("*") if p.is_file()):
        content = path.read_bytes()
        text.update(f"{path.relative_to(sample_data)} {len(content)} ".encode())
        text.update(content)
    return text.hexdigest()


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


def _sample_data() -> Path:
    return _PACKAGED if _PACKAGED.is_dir() else _CHECKOUT


def sample_settings() -> Path:
    """Return the file of the demo's own settings."""
    return _sample_data() / "goodput.toml"


def _make(folder: Path) -> None:
    with stated(StoreError, f"{folder}: the demo cannot be stored there", "Name another --dir."):
        folder.mkdir(parents=True, exist_ok=True)


def _whole(target: Path, fill: Callable[[Path], None]) -> None:
    """Fill a draft; it gets its name only when it is whole."""
    draft = target.parent / f"draft-{os.getpid()}.duckdb"
    _discard(draft)
    try:
        fill(draft)
        draft.replace(target)
    finally:
        _discard(draft)


def _fill(
    path: Path,
    steps: list[Step],
    on_progress: Callable[[Path, int], None],
    archives: Sequence[Path] = (),
) -> None:
    store = LocalStore(path)
    try:
        for folder in archives:
            retention.load_archive(store, folder / "ledger.parquet", folder / "energy.parquet")
        for step in steps:
            ingest.ingest(store, step.source, [step.path], step.options, on_progress=on_progress)
        store.build()
    finally:
        store.close()


def _made_up(folder: Path, gpus: int) -> list[Step]:
    try:
        world = fleets.imagine(
            gpus=gpus, hours=FLEET_HOURS, seed=FLEET_SEED, start=FLEET_START, interval_s=INTERVAL_S,
            plan=shown,
        )  # fmt: skip
    except ValueError as error:
        raise GoodputError(f"--gpus {gpus}: {error}.") from error
    fleets.write_known(folder, world, world.total_s)
    serving = folder / "serving"
    hours = min(SERVING_HOURS, FLEET_HOURS)
    site.write(
        serving, end=FLEET_START + timedelta(hours=FLEET_HOURS), hours=hours, seed=FLEET_SEED
    )
    return [*recipe(folder), *recipe(serving)]


def _discard(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.with_name(f"{path.name}.wal").unlink(missing_ok=True)
