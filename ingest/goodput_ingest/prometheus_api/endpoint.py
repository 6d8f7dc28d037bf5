"""Connection settings of a Prometheus server: URL, credentials, certificates."""

import os
import ssl
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from goodput_queries.errors import IngestError


@dataclass(frozen=True, kw_only=True)
class Credentials:
    """How a server knows us, and we know it.

    username with password_env or password_file: basic authentication; token_env or token_file: a
    bearer token. Secrets come from the environment or from files, never from the settings.
    ca_file: certificates that may sign the server's; certificate_file, key_file: our own.
    """

    username: str | None = None
    password_env: str | None = None
    password_file: str | None = None
    token_env: str | None = None
    token_file: str | None = None
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    is_certificate_checked: bool = True

    def credentials(self) -> dict[str, Any]:
        """Return these settings alone, by name."""
        return {one.name: getattr(self, one.name) for one in fields(Credentials)}


@dataclass(frozen=True, kw_only=True)
class Endpoint(Credentials):
    """A server with Prometheus's HTTP API (Thanos, Mimir and VictoriaMetrics have it as well).

    url: as `https://prometheus.example:9090`, with the path of a proxy if there is one.
    tenant: sent as X-Scope-OrgID (Mimir). timeout_s: how long one answer may take in all.
    answer_max_bytes, answer_max_series: how much it may hold.
    matchers: which series of a server for many clusters, as `cluster="a",env="prod"`.
    """

    url: str
    tenant: str | None = None
    timeout_s: float = 60.0
    answer_max_bytes: int = 128 * 1024 * 1024  # about five million points
    answer_max_series: int = 250_000
    matchers: str = ""

    def __post_init__(self) -> None:
        """Refuse settings that cannot work or would write a password into the database."""
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise IngestError(
                f"{self.url}: this is not the URL of a server; write http://host:9090 or https://host."
            )
        if parts.username or parts.password:
            raise IngestError(
                f"{parts.hostname}: the URL carries a user or password, which would be stored with "
                "the data; use username with password_env or password_file."
            )
        if "{" in self.matchers.split('"')[0]:
            raise IngestError(
                f"matchers is {self.matchers!r}; write it without the braces, as 'cluster=\"a\"'."
            )

    @property
    def base_url(self) -> str:
        """Return the URL without a slash at its end."""
        return self.url.rstrip("/")

    @property
    def origin(self) -> str:
        """Return the polled origin: each part of a server has a watermark of its own."""
        return f"{self.base_url} {{{self.matchers}}}" if self.matchers else self.base_url

    def basic(self) -> tuple[str, str] | None:
        """Return user and password, read now; None where none are set."""
        if self.username is None:
            return None
        return self.username, _secret(self.password_env, self.password_file) or ""

    def headers(self) -> dict[str, str]:
        """Return the headers of every request; reads the token now, since it may change."""
        found = {} if self.tenant is None else {"X-Scope-OrgID": self.tenant}
        if token := _secret(self.token_env, self.token_file):
            found["Authorization"] = f"Bearer {token}"
        return found

    def tls(self) -> ssl.SSLContext:
        """Return which certificates are trusted and which is ours, as their files are now."""
        trusted = ssl.get_default_verify_paths()
        files = (self.ca_file, self.certificate_file, self.key_file)
        read = (*files, trusted.cafile, trusted.capath)
        try:
            changed_ns = tuple(
                Path(file).stat().st_mtime_ns if file and Path(file).exists() else None
                for file in read
            )
            return _context(*files, self.is_certificate_checked, changed_ns)
        except (OSError, ssl.SSLError) as error:
            raise IngestError(
                f"{self.url}: a certificate file cannot be read ({error}); see ca_file, "
                "certificate_file and key_file."
            ) from error


@lru_cache(maxsize=64)
def _context(
    ca_file: str | None,
    certificate_file: str | None,
    key_file: str | None,
    is_checked: bool,
    _changed_ns: tuple[int | None, ...],
) -> ssl.SSLContext:
    """Return a context of these files; reading those of a system takes longer than a poll."""
    context = ssl.create_default_context(cafile=ca_file)
    if certificate_file:
        context.load_cert_chain(certificate_file, key_file)
    if not is_checked:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _secret(variable: str | None, file: str | None) -> str | None:
    if variable is not None:
        if variable not in os.environ:
            raise IngestError(
                f"the environment variable {variable} is not set; it must contain the secret."
            )
        return os.environ[variable].strip()
    if file is not None:
        try:
            return Path(file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise IngestError(f"{file}: the secret in it cannot be read ({error}).") from error
    return None
