"""`[access]` of goodput.toml: how people sign in, under which names, and what they may do."""

import ipaddress
from datetime import date
from urllib.parse import urlsplit

import msgspec

from goodput_app.access.identity import Role
from goodput_messages.checks import (
    check_url,
    optional_secret,
    refuse_others,
    refuse_outside,
    refuse_unless_one,
    secret,
)
from goodput_queries.errors import GoodputError
from goodput_queries.remote import LOOPBACK_HOSTS

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

SIGN_INS = ("oidc", "proxy")
ROLES = tuple(role.value for role in Role)
CALLBACK = "/oauth2callback"
METADATA = "/.well-known/openid-configuration"
COOKIE_SECRET_MIN_CHARS = 32
TOKEN_NAME_MAX_CHARS = 60
SHA256_CHARS = 64
SESSION_MAX_H = 24 * 30  # as long as the browser keeps the cookie


def _network(text: str) -> Network:
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        raise GoodputError(
            f"'access.proxy.addresses' has {text!r}, expected addresses or networks such as "
            "10.0.0.0/8."
        ) from None


def _refuse_role(section: str, role: str, teams: tuple[str, ...] | None) -> None:
    refuse_others(f"access.{section}.role", [role], ROLES)
    if teams is not None and not teams:
        raise GoodputError(
            f"'access.{section}.teams' is empty, expected names of teams, or no such key for all."
        )


def _refuse_readable(key: str, url: str) -> None:
    """Raise GoodputError for what is no URL, or one whose answers are not encrypted."""
    parts = urlsplit(check_url(key, url))
    if parts.scheme != "https" and parts.hostname not in LOOPBACK_HOSTS:
        raise GoodputError(f"{key!r} is {url!r}, expected a URL with https.")


def _refuse_unless_host(host: str) -> None:
    name = host.removeprefix("*.")
    if not name or not name.isascii() or not name.replace("-", "").replace(".", "").isalnum():
        raise GoodputError(
            f"'access.hosts' has {host!r}, expected names without scheme and port, such as "
            "goodput.example.org or *.example.org."
        )


class Member(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An `[[access.members]]` table: a person, or a group of the provider, and what they may do.

    teams: whose rows they see; without the key those of all teams.
    """

    person: str | None = None
    group: str | None = None
    role: str = Role.VIEWER.value
    teams: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Refuse a member who is nobody, or both a person and a group."""
        if (self.person is None) == (self.group is None) or "" in (self.person, self.group):
            raise GoodputError("an [[access.members]] table needs one of 'person' and 'group'.")
        _refuse_role("members", self.role, self.teams)


class Token(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An `[[access.tokens]]` table: a program that asks `/api/v1`; `goodput token` makes one.

    sha256: of the token, which is stored nowhere. teams: whose rows it sees; without the key those
    of all teams. expires_on: its last day, in UTC.
    """

    name: str
    sha256: str
    role: str = Role.VIEWER.value
    teams: tuple[str, ...] | None = None
    expires_on: date | None = None

    def __post_init__(self) -> None:
        """Refuse a token that nobody could use, or that could be confused with another."""
        if not (1 <= len(self.name) <= TOKEN_NAME_MAX_CHARS and self.name.isprintable()):
            raise GoodputError(
                f"'access.tokens.name' has 1 to {TOKEN_NAME_MAX_CHARS} printable characters."
            )
        if len(self.sha256) != SHA256_CHARS or not set(self.sha256) <= set("0123456789abcdef"):
            raise GoodputError(
                f"'access.tokens.sha256' of {self.name!r} is not a SHA-256 in lower case; "
                "`goodput token` prints it."
            )
        _refuse_role("tokens", self.role, self.teams)


class OidcSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[access.oidc]`: the OpenID Connect provider, and the claims with name and groups.

    issuer: its URL; metadata_url instead, where the metadata are not below the issuer.
    redirect_uri: where browsers reach the dashboard, followed by /oauth2callback. cookie_secret_*:
    what the cookie of a signed-in browser is signed with.
    """

    issuer: str | None = None
    metadata_url: str | None = None
    client_id: str = ""
    client_secret_env: str | None = None
    client_secret_file: str | None = None
    cookie_secret_env: str | None = None
    cookie_secret_file: str | None = None
    redirect_uri: str = ""
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    name_claim: str = "email"
    groups_claim: str = "groups"

    def __post_init__(self) -> None:
        """Refuse a provider that cannot be asked, and answers that others could read."""
        if (self.issuer is None) == (self.metadata_url is None):
            raise GoodputError("'access.oidc' needs one of 'issuer' and 'metadata_url'.")
        _refuse_readable("access.oidc.issuer or metadata_url", self.server_metadata_url)
        for key in ("client_id", "name_claim", "groups_claim"):
            if not getattr(self, key):
                raise GoodputError(f"'access.oidc.{key}' is missing, expected a text in quotes.")
        where = "access.oidc"
        refuse_unless_one(where, "client_secret", self.client_secret_env, self.client_secret_file)
        refuse_unless_one(where, "cookie_secret", self.cookie_secret_env, self.cookie_secret_file)
        _refuse_readable("access.oidc.redirect_uri", self.redirect_uri)
        if not urlsplit(self.redirect_uri).path.endswith(CALLBACK):
            raise GoodputError(
                f"'access.oidc.redirect_uri' is {self.redirect_uri!r}, expected the URL of the "
                f"dashboard followed by {CALLBACK}, such as https://goodput.example.org{CALLBACK}."
            )
        if "openid" not in self.scopes:
            raise GoodputError("'access.oidc.scopes' lacks \"openid\", which names the person.")

    @property
    def server_metadata_url(self) -> str:
        """Return the URL of the provider's metadata."""
        return self.metadata_url or f"{(self.issuer or '').rstrip('/')}{METADATA}"

    @property
    def base_path(self) -> str:
        """Return the path of the dashboard behind its proxy; '' at the root."""
        return urlsplit(self.redirect_uri).path.removesuffix(CALLBACK).rstrip("/")

    @property
    def origin(self) -> str:
        """Return scheme and host of the dashboard, as browsers name it."""
        parts = urlsplit(self.redirect_uri)
        return f"{parts.scheme}://{parts.netloc}"

    def client_secret(self) -> str:
        """Return what the provider knows this client by; raises GoodputError where it is absent."""
        return secret(self.client_secret_env, self.client_secret_file)

    def cookie_secret(self) -> str:
        """Return what cookies are signed with; raises GoodputError where it is absent or short."""
        found = secret(self.cookie_secret_env, self.cookie_secret_file)
        if len(found) < COOKIE_SECRET_MIN_CHARS:
            raise GoodputError(
                f"the cookie secret of [access.oidc] has {len(found)} characters, expected at "
                f"least {COOKIE_SECRET_MIN_CHARS}; `openssl rand -hex 32` makes one."
            )
        return found


class ProxySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[access.proxy]`: the proxy that signs people in, and how it names them.

    addresses: from where it connects, as networks; of these `X-Forwarded-For` is believed, too.
    groups_header: names with commas between them.
    """

    name_header: str = "X-Forwarded-User"
    groups_header: str = "X-Forwarded-Groups"
    addresses: tuple[str, ...] = ("127.0.0.1/32", "::1/128")

    def __post_init__(self) -> None:
        """Refuse headers and addresses that are none."""
        for key in ("name_header", "groups_header"):
            given = getattr(self, key)
            if not given.isascii() or not given.replace("-", "").isalnum():
                raise GoodputError(
                    f"'access.proxy.{key}' is {given!r}, expected a name such as X-Forwarded-User."
                )
        if not self.addresses:
            raise GoodputError("'access.proxy.addresses' is empty, expected networks.")
        for one in self.addresses:
            _network(one)

    @property
    def networks(self) -> tuple[Network, ...]:
        """Return the addresses as networks."""
        return tuple(_network(one) for one in self.addresses)


class PersonLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[access.per_person]`: what a person or token may take, with pages, SQL, API and uploads.

    seconds_per_minute: of processor time, to evaluate and to draw. rows_per_minute: of answers.
    memory_mib: of queries that run and files on their way in, at once.
    """

    seconds_per_minute: int = 45
    rows_per_minute: int = 2_000_000
    memory_mib: int = 1024

    def __post_init__(self) -> None:
        """Refuse what would let nothing be answered."""
        refuse_outside("access.per_person", self, seconds_per_minute=(1, 3600))
        refuse_outside("access.per_person", self, rows_per_minute=(1, 10**9))
        refuse_outside("access.per_person", self, memory_mib=(64, 1_048_576))


class AccessSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who may use the dashboard, and under which names it is reached.

    sign_in: "oidc" or "proxy"; without it only the loopback is served. hosts: names in the URL of
    the dashboard, `*.example.org` for all below; loopback names always work. session_h: after so
    many hours people sign in again. default_role: of people that no member names; without it they
    are refused. metrics_token_*: the bearer token of `/metrics`; without it, where people sign in,
    `/metrics` is for tokens that see all teams, and for the loopback unless a proxy connects from
    there. frame_ancestors: origins whose pages may frame these. tokens: programs that ask
    `/api/v1`.
    """

    sign_in: str | None = None
    hosts: tuple[str, ...] = ()
    session_h: int = 12
    default_role: str | None = None
    metrics_token_env: str | None = None
    metrics_token_file: str | None = None
    frame_ancestors: tuple[str, ...] = ()
    oidc: OidcSettings | None = None
    proxy: ProxySettings = ProxySettings()
    per_person: PersonLimits = PersonLimits()
    members: tuple[Member, ...] = ()
    tokens: tuple[Token, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a sign-in that would let nobody in, or that lacks its section."""
        if self.sign_in is not None:
            refuse_others("access.sign_in", [self.sign_in], SIGN_INS)
            if not self.members and self.default_role is None:
                raise GoodputError(
                    "'access.members' is empty, expected [[access.members]] tables or a "
                    "'default_role': nobody could use the dashboard."
                )
        self._refuse_unusable_tokens()
        if self.sign_in == "oidc" and self.oidc is None:
            raise GoodputError("'access.sign_in' is 'oidc', expected a section [access.oidc].")
        if self.sign_in == "proxy" and not self.hosts:
            raise GoodputError(
                "'access.hosts' is empty, expected the names under which the proxy is reached."
            )
        if self.default_role is not None:
            refuse_others("access.default_role", [self.default_role], ROLES)
        if not 1 <= self.session_h <= SESSION_MAX_H:
            raise GoodputError(
                f"'access.session_h' is {self.session_h}, expected 1 to {SESSION_MAX_H} hours."
            )
        for host in self.hosts:
            _refuse_unless_host(host)
        for origin in self.frame_ancestors:
            check_url("access.frame_ancestors", origin)
            if any(c in origin for c in ";,'\""):
                raise GoodputError(
                    "'access.frame_ancestors' is no origin like https://example.org."
                )
        if self.metrics_token_env is not None and self.metrics_token_file is not None:
            raise GoodputError(
                "'access' has metrics_token_env and metrics_token_file, expected one of them."
            )

    def _refuse_unusable_tokens(self) -> None:
        """Refuse tokens that limit nobody, and two that could be confused."""
        if self.tokens and self.sign_in is None:
            raise GoodputError(
                "'access.tokens' needs 'access.sign_in': without it everybody who reaches the "
                "server reads everything, with no token."
            )
        for key in ("name", "sha256"):
            values = [getattr(token, key) for token in self.tokens]
            if len(set(values)) < len(values):
                raise GoodputError(f"'access.tokens' has two tables with the same {key}.")

    def names(self, *, is_loopback: bool, public_url: str | None = None) -> tuple[str, ...] | None:
        """Return the host names that are answered; None: all.

        is_loopback: whether the server listens on the loopback alone
        """
        own = [*self.hosts]
        if self.sign_in == "oidc" and self.oidc is not None:
            own.append(urlsplit(self.oidc.redirect_uri).hostname or "")
        if not own and not is_loopback:
            return None
        if public_url is not None:
            own.append(urlsplit(public_url).hostname or "")
        return (*own, *sorted(LOOPBACK_HOSTS))

    @property
    def base_path(self) -> str:
        """Return the path that Streamlit's links begin with; '' where they are relative."""
        return self.oidc.base_path if self.sign_in == "oidc" and self.oidc is not None else ""

    @property
    def public_url(self) -> str | None:
        """Return the URL that browsers open, where the settings name it."""
        if self.sign_in == "oidc" and self.oidc is not None:
            return f"{self.oidc.origin}{self.oidc.base_path}"
        return None

    def metrics_token(self) -> str | None:
        """Return the bearer token of `/metrics`, where there is one."""
        return optional_secret(self.metrics_token_env, self.metrics_token_file)
