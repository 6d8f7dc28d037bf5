"""What a site writes once instead of on every command line: `goodput.toml`, checked by msgspec.

A command line option beats an environment variable, that beats the file, that beats the default.
"""

import os
import tomllib
from datetime import date, datetime, time
from functools import cache
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from goodput_app.access.settings import AccessSettings
from goodput_app.settings_errors import explained
from goodput_billing.delivery.settings import ReportSettings
from goodput_billing.statement.settings import StatementSettings
from goodput_messages.checks import check_url, optional_secret, refuse_outside
from goodput_messages.otlp_settings import OtlpSettings
from goodput_messages.targets import AnyTarget, refuse_equal_targets
from goodput_queries.errors import GoodputError
from goodput_queries.evidence.plausible import EARLIEST
from goodput_queries.ledger_build.lake import LakeOptions
from goodput_queries.objectives.goodput import Objective, refuse_equal_names
from goodput_queries.objectives.serving import ServingObjective, refuse_equal_models

FILE_VARIABLE = "GOODPUT_CONFIG"
DEFAULT_FILE = "goodput.toml"


class IngestSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
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


class PluginSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the site adds to what is read: a folder with `profiles` and `exporters`."""

    folder: Path | None = None


class ServeSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the dashboard listens; without a port: 8501 or the next free one.

    insecure: an address that others reach is wanted, though nobody signs in. public_url: where
    people find the dashboard, with its path behind a proxy; notifications link to it. Its host is
    answered where only some are.
    """

    address: str = "127.0.0.1"
    port: int | None = None
    insecure: bool = False
    public_url: str | None = None

    def __post_init__(self) -> None:
        """Refuse a public_url that is none."""
        if self.public_url is not None:
            check_url("serve.public_url", self.public_url)


class ReceiveSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `goodput serve` receives: OTLP metrics and Prometheus remote-write.

    token_env, token_file: the bearer token of senders; without it nothing is received.
    """

    token_env: str | None = None
    token_file: str | None = None

    def __post_init__(self) -> None:
        """Refuse two tokens."""
        if self.token_env is not None and self.token_file is not None:
            raise GoodputError("'receive' has token_env and token_file, expected one of them.")

    def token(self) -> str | None:
        """Return the token of senders; raises GoodputError where what is named has none."""
        return optional_secret(self.token_env, self.token_file)


class DatabaseSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the database engine may take of the machine.

    threads: unset: all cores. memory_mib: unset: 1 GiB a thread and at least 2, at most 80 % of the
    machine; what needs more goes to files beside the database. The process takes up to half a GiB
    more.
    """

    threads: int | None = None
    memory_mib: int | None = None

    def __post_init__(self) -> None:
        """Refuse what no build can do with."""
        refuse_outside("database", self, threads=(1, 1024), memory_mib=(256, 16_777_216))


class UiSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the dashboard shows before anybody chose something, and what it lets people do.

    range: as in `--from`. edit_prices: prices, tariffs and budgets may be written on the Cost page:
    by finance and admins where people sign in, else by whoever sees it. mfu_target: the MFU that
    runs are to reach, and the share of time with active tensor cores; unset: none.
    """

    range: str = "now-24h"
    edit_prices: bool = False
    mfu_target: float | None = None

    def __post_init__(self) -> None:
        """Refuse a target that is no share."""
        refuse_outside("ui", self, mfu_target=(0, 1))


class RetentionSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many days evidence is kept; without a number for ever. See `queries.retention`."""

    samples_days: int | None = None
    collectives_days: int | None = None
    segments_days: int | None = None


class LakeSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A lake that several hosts load into, instead of a database. See docs/lake.md.

    url: its folder or URL, such as "s3://metrics/goodput"; unset: none. cluster: of rows that name
    none; unset: that of [ingest]. engine: what builds compute readings with, `local` or `ray`.
    address: of the Ray cluster, as `ray.init` takes it; unset: workers on this host. workers: tasks
    at a time; unset: by the number of cores. recent_days: of which a database of the lake has the
    readings too. publish: its builds write closed hours of the ledger to the lake.
    """

    url: str | None = None
    cluster: str | None = None
    engine: Literal["local", "ray"] = "local"
    address: str | None = None
    workers: int | None = None
    recent_days: int = 2
    publish: bool = False


class ReplaySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What operators may replay from the Data page besides what they upload.

    folder: its files and folders are offered by name; unset: none. upload_max_mib: of a file that
    is uploaded. uploads_per_hour_mib: of what a person uploads in an hour; it is in memory as long
    as their page is open.
    """

    folder: str | None = None
    upload_max_mib: int = 50
    uploads_per_hour_mib: int = 200

    def __post_init__(self) -> None:
        """Refuse limits that let nothing in."""
        refuse_outside("replay", self, upload_max_mib=(1, 2048))
        least = self.upload_max_mib
        refuse_outside("replay", self, uploads_per_hour_mib=(least, 100 * least))


class MetricsSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `/metrics` counts. See `queries.counted_hours`.

    label_values: teams, partitions and GPU models of a cluster that have series of their own.
    settle_h: hours after its end at which an hour is counted.
    """

    label_values: int = 20
    settle_h: int = 6

    def __post_init__(self) -> None:
        """Refuse more series than a Prometheus takes, and hours that are not over."""
        refuse_outside("metrics", self, label_values=(1, 500), settle_h=(1, 720))


class ServingSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What inference engines are to attain.

    objectives: unset: those that the database has stay; an empty list removes them.
    """

    objectives: tuple[ServingObjective, ...] | None = None

    def __post_init__(self) -> None:
        """Refuse an objective that would never hold."""
        refuse_equal_models(self.objectives or ())


class QuerySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What selects of the Query page and of `/api/v1` may take. See `queries.sandbox.limits`.

    at_once: how many run at the same time, each in a process with up to memory_mib.
    """

    timeout_s: int = 30
    memory_mib: int = 512
    rows_max: int = 100_000
    at_once: int = 2

    def __post_init__(self) -> None:
        """Refuse what would leave no room for a query, or for anything else."""
        refuse_outside("query", self, timeout_s=(1, 600), memory_mib=(64, 65_536))
        refuse_outside("query", self, rows_max=(1, 5_000_000), at_once=(1, 32))


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All of `goodput.toml`.

    collect: its `[[collect]]` tables as they stand; `goodput_ingest.live.config` reads them.
    evaluation_counts: declared evaluation is useful time, and counts in goodput.
    objectives: its `[[objectives]]` tables: the goodput that teams and clusters are to have.
    notify: its `[[notify]]` tables: where findings are sent.
    access: who may use the dashboard. otlp: where metrics are pushed; unset: nowhere.
    """

    db: str = "goodput.duckdb"
    ingest: IngestSettings = IngestSettings()
    serve: ServeSettings = ServeSettings()
    ui: UiSettings = UiSettings()
    retention: RetentionSettings = RetentionSettings()
    lake: LakeSettings = LakeSettings()
    metrics: MetricsSettings = MetricsSettings()
    replay: ReplaySettings = ReplaySettings()
    query: QuerySettings = QuerySettings()
    database: DatabaseSettings = DatabaseSettings()
    statement: StatementSettings = StatementSettings()
    report: ReportSettings = ReportSettings()
    collect: tuple[dict[str, Any], ...] = ()
    evaluation_counts: bool = False
    objectives: tuple[Objective, ...] = ()
    serving: ServingSettings = ServingSettings()
    notify: tuple[AnyTarget, ...] = ()
    access: AccessSettings = AccessSettings()
    plugins: PluginSettings = PluginSettings()
    receive: ReceiveSettings = ReceiveSettings()
    otlp: OtlpSettings | None = None

    def __post_init__(self) -> None:
        """Refuse objectives or targets of the same name, and limits that let no query run."""
        refuse_equal_names(self.objectives)
        refuse_equal_targets(self.notify)
        least = max(self.query.memory_mib, self.replay.upload_max_mib + 1)
        if self.access.sign_in and self.access.per_person.memory_mib < least:
            raise GoodputError(
                f"'access.per_person.memory_mib' is {self.access.per_person.memory_mib}, expected "
                f"{least} or more: one query (query.memory_mib) or upload would be refused."
            )

    @property
    def public_url(self) -> str | None:
        """Return the URL that browsers open, where the settings name it."""
        return self.serve.public_url or self.access.public_url

    @property
    def base_path(self) -> str:
        """Return the path of the dashboard behind its proxy; '' at the root."""
        return self.access.base_path or urlsplit(self.serve.public_url or "").path.rstrip("/")

    @property
    def lake_cluster(self) -> str:
        """Return the cluster of rows for a lake that name none; '' is unknown."""
        return self.lake.cluster or self.ingest.cluster or ""

    @property
    def store_options(self) -> dict[str, Any]:
        """Return what opening a database takes from the settings."""
        return {
            "threads": self.database.threads,
            "memory_mib": self.database.memory_mib,
            "evaluation_counts": self.evaluation_counts,
            "objectives": self.objectives,
            "serving_objectives": self.serving.objectives,
            "lake": LakeOptions(
                engine=self.lake.engine,
                address=self.lake.address,
                workers=self.lake.workers,
                recent_days=self.lake.recent_days,
                cluster=self.lake_cluster,
                publishes=self.lake.publish,
            ),
        }


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
    _refuse_secrets(path, given, "")
    try:
        return msgspec.convert(given, Settings)
    except GoodputError as error:  # a section refuses a value
        raise GoodputError(f"{path}: {error}") from error
    except msgspec.ValidationError as error:
        raise GoodputError(f"{path}: {explained(str(error), given, Settings)}") from error


def _refuse_secrets(path: Path, given: dict[str, Any], prefix: str) -> None:
    """Raise GoodputError for a key, of any section, that would hold a secret."""
    for key, value in given.items():
        if isinstance(value, dict):
            _refuse_secrets(path, value, f"{prefix}{key}.")
        elif key in SECRETS:
            raise GoodputError(
                f"{path}: '{prefix}{key}' would be a secret in a settings file; name the "
                f"environment variable or the file that has it ({key}_env, {key}_file)."
            )
