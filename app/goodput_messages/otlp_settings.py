"""Settings of the push of metrics by OTLP: where to, how often, as whom."""

import msgspec

from goodput_messages.checks import (
    optional_secret,
    refuse_outside,
    refuse_token_in_the_clear,
    refuse_two,
)
from goodput_messages.http_post import Endpoint
from goodput_queries.errors import GoodputError

SECTION = "otlp"
OF_PROTOCOL = frozenset({"content-type", "content-encoding", "content-length", "host"})


class OtlpSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where `goodput serve` pushes its metrics by OTLP over HTTP.

    url: the whole of it, such as "https://otel.example.org/v1/metrics". every_s: between two
    pushes. token_env, token_file: sent as `Authorization: Bearer`, or as it is in token_header.
    headers: more of them that are no secret. attributes: of the resource, besides service.name,
    service.version and service.instance.id, or instead of these. timeout_s: how long a push may
    take. ca_file: as for mail.
    """

    url: str = ""
    every_s: int = 60
    token_env: str | None = None
    token_file: str | None = None
    token_header: str | None = None
    headers: dict[str, str] = {}
    attributes: dict[str, str] = {}
    ca_file: str | None = None
    timeout_s: int = 10

    def __post_init__(self) -> None:
        """Refuse a URL that is none, and headers that would say what is not so."""
        refuse_token_in_the_clear(f"{SECTION}.url", self.url, self.token_env, self.token_file)
        refuse_two(SECTION, "token", self.token_env, self.token_file)
        refuse_outside(SECTION, self, every_s=(5, 86_400), timeout_s=(1, 300))
        named = {name.lower() for name in (*self.headers, self.token_header or "")}
        if wrong := sorted(named & OF_PROTOCOL):
            raise GoodputError(f"'{SECTION}.headers' has {wrong[0]!r}, which the protocol decides.")
        if any(name.lower() == "authorization" for name in self.headers):
            raise GoodputError(
                f"'{SECTION}.headers' has 'authorization', which would be a secret in a settings "
                "file; name the environment variable or the file that has it (token_env, "
                "token_file)."
            )

    @property
    def origin(self) -> str:
        """Return scheme and server, which is all of the URL that sentences name."""
        return Endpoint(self.url, SECTION, self.timeout_s).origin

    def endpoint(self) -> Endpoint:
        """Return where metrics are posted; raises GoodputError where the token is missing."""
        token = None if self.token_header else self._token()
        return Endpoint(self.url, SECTION, self.timeout_s, self.ca_file, token)

    def sent_headers(self) -> dict[str, str]:
        """Return the headers of a push; raises GoodputError where the token is missing."""
        if self.token_header is None or (token := self._token()) is None:
            return self.headers
        return {**self.headers, self.token_header: token}

    def _token(self) -> str | None:
        return optional_secret(self.token_env, self.token_file)
