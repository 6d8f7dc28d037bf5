"""What a site writes once instead of on every command line: `goodput.toml`, read into dataclasses.

A command line option beats an environment variable, that beats the file, that beats the default.
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, field, fields
from datetime import date, datetime, time
from functools import cache
from pathlib import Path
from typing import Any

from goodput_billing.delivery.settings import MailSettings, ReportSettings, WebhookSettings
from goodput_billing.statement.settings import StatementSettings
from goodput_queries.errors import GoodputError
from goodput_queries.evidence.plausible import EARLIEST

FILE_VARIABLE = "GOODPUT_CONFIG"
DEFAULT_FILE = "goodput.toml"


@dataclass(frozen=True)
class IngestSettings:
    """What recorded files do not say of themselves.

    cluster: which cluster they speak of. timezone: IANA name for times that carry no zone.
    earliest: the first day that is plausible, of live sources too: rows observed before it are
    rejected.
    """

    cluster: str | None = None
    timezone: str | None = None
    earliest: str = f"{EARLIEST:%Y-%m-%d}"

    def __post_init__(self) -> None:
        """Refuse a day that is none, or one before any GPU."""
        try:
            is_plausible = self.earliest_at >= EARLIEST
        except ValueError:
            is_plausible = False
        if not is_plausible:
            raise GoodputError(
                f"'ingest.earliest' is {self.earliest!r}, expected a day from {EARLIEST:%Y-%m-%d} "
                'on, such as "2015-01-01".'
            )

    @property
    def earliest_at(self) -> datetime:
        """Return the beginning of the first plausible day, naive UTC."""
        return datetime.combine(date.fromisoformat(self.earliest), time.min)


@dataclass(frozen=True)
class ServeSettings:
    """Where the dashboard listens; without a port: 8501 or the next free one.

    insecure: an address that others reach is wanted, though there is no login.
    """

    address: str = "127.0.0.1"
    port: int | None = None
    insecure: bool = False


@dataclass(frozen=True)
class UiSettings:
    """What the dashboard shows before anybody chose something, and what it lets people do.

    range: as in `--from`. edit_prices: who sees the Cost page may write prices, tariffs and budgets
    there; the dashboard does not tell its readers apart.
    """

    range: str = "now-24h"
    edit_prices: bool = False


@dataclass(frozen=True)
class RetentionSettings:
    """How many days evidence is kept; without a number for ever. See `queries.retention`."""

    samples_days: int | None = None
    collectives_days: int | None = None
    segments_days: int | None = None


@dataclass(frozen=True)
class Settings:
    """All of `goodput.toml`.

    collect: its `[[collect]]` tables as they stand; `goodput_ingest.live.config` reads them.
    evaluation_counts: declared evaluation is useful time, and counts in goodput.
    """

    db: str = "goodput.duckdb"
    ingest: IngestSettings = field(default_factory=IngestSettings)
    serve: ServeSettings = field(default_factory=ServeSettings)
    ui: UiSettings = field(default_factory=UiSettings)
    retention: RetentionSettings = field(default_factory=RetentionSettings)
    statement: StatementSettings = field(default_factory=StatementSettings)
    report: ReportSettings = field(default_factory=ReportSettings)
    collect: tuple[dict[str, Any], ...] = ()
    evaluation_counts: bool = False


SECTIONS: dict[str, type] = {
    "ingest": IngestSettings,
    "serve": ServeSettings,
    "ui": UiSettings,
    "retention": RetentionSettings,
    "statement": StatementSettings,
    "report": ReportSettings,
}
SECTIONS_IN: dict[type, dict[str, type]] = {
    ReportSettings: {"mail": MailSettings, "webhook": WebhookSettings},
}
WHOLE_NUMBER: tuple[type, str] = (int, "a whole number")
YES_OR_NO: tuple[type, str] = (bool, "true or false")
TEXTS: tuple[type, str] = (list, "a list of texts in quotes")
TYPES: dict[str, tuple[type, str]] = {
    "port": WHOLE_NUMBER,
    "samples_days": WHOLE_NUMBER,
    "collectives_days": WHOLE_NUMBER,
    "segments_days": WHOLE_NUMBER,
    "lateness_h": WHOLE_NUMBER,
    "credit_infra_failures": YES_OR_NO,
    "charge_inferred": YES_OR_NO,
    "edit_prices": YES_OR_NO,
    "insecure": YES_OR_NO,
    "evaluation_counts": YES_OR_NO,
    "showback": YES_OR_NO,
    "provisional": YES_OR_NO,
    "timeout_s": WHOLE_NUMBER,
    "attach_max_mb": WHOLE_NUMBER,
    "formats": TEXTS,
    "attach": TEXTS,
    "to": TEXTS,
}
TEXT: tuple[type, str] = (str, "a text in quotes")
SECRETS = frozenset({"password", "token", "secret"})


@cache
def settings() -> Settings:
    """Return the settings of this process, read once from `$GOODPUT_CONFIG` or `goodput.toml`.

    A file that is named must exist; without one the defaults hold.
    """
    path = settings_file()
    if not os.environ.get(FILE_VARIABLE) and not path.exists():
        return Settings()
    return read(path)


def settings_file() -> Path:
    """Return where the settings are looked for."""
    return Path(os.environ.get(FILE_VARIABLE) or DEFAULT_FILE)


def read(path: Path) -> Settings:
    """Return the settings in a file; raises GoodputError naming the key that is wrong."""
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise GoodputError(f"{path}: the settings cannot be read ({error.strerror}).") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise GoodputError(f"{path}: this is not TOML ({error}).") from error
    collect = _collect(path, given.pop("collect", []))
    top = {key: value for key, value in given.items() if key not in SECTIONS}
    _check(path, "", top, Settings)
    sections = {
        name: _section(path, name, given.get(name, {}), SECTIONS[name]) for name in SECTIONS
    }
    return Settings(**top, **sections, collect=collect)


def _section(path: Path, name: str, given: Any, kind: type) -> Any:
    if not isinstance(given, dict):
        raise GoodputError(f"{path}: {name!r} is a section; write it as [{name}].")
    inner = {
        key: _section(path, f"{name}.{key}", given[key], part)
        for key, part in SECTIONS_IN.get(kind, {}).items()
        if key in given
    }
    plain = {key: value for key, value in given.items() if key not in inner}
    _check(path, f"{name}.", plain, kind)
    values = {k: tuple(v) if isinstance(v, list) else v for k, v in plain.items()}
    return kind(**values, **inner)


def _collect(path: Path, given: Any) -> tuple[dict[str, Any], ...]:
    if not isinstance(given, list) or not all(isinstance(table, dict) for table in given):
        raise GoodputError(f"{path}: 'collect' is a list; write each source as [[collect]].")
    return tuple(given)


def _check(path: Path, prefix: str, given: dict[str, Any], kind: type) -> None:
    known = [f.name for f in fields(kind)]
    for key, value in given.items():
        if key in SECRETS:
            raise GoodputError(
                f"{path}: '{prefix}{key}' would be a secret in a settings file; name the "
                f"environment variable or the file that has it ({key}_env, {key}_file)."
            )
        if key not in known:
            names = ", ".join(f"{prefix}{name}" for name in known)
            raise GoodputError(f"{path}: there is no setting '{prefix}{key}'; known: {names}.")
        expected, words = TYPES.get(key, TEXT)
        is_mixed = isinstance(value, list) and any(type(one) is not str for one in value)
        if type(value) is not expected or is_mixed:
            raise GoodputError(f"{path}: '{prefix}{key}' is {value!r}, expected {words}.")
