"""Every route of the application for everybody: open, refused, or given to its owner alone.

Routes are those of the application itself: one without a row in the table fails.
"""

import asyncio
from fnmatch import fnmatch

import pytest
from streamlit.runtime import Runtime
from streamlit.runtime.media_file_storage import MediaFileKind, MediaFileStorageError
from tests.tables import each

from goodput_app.access import current
from goodput_app.access.identity import Identity, Role
from goodput_app.cli.serve import received
from goodput_app.server.asgi import configure, create_app
from goodput_app.server.media import OwnedMedia
from goodput_app.settings import settings
from goodput_queries.remote import ServerNote
from goodput_queries.storage.opening import IN_MEMORY

HOST = "goodput.example.org"
SETTINGS = f"""
[access]
sign_in = "proxy"
hosts = ["{HOST}"]
[access.proxy]
addresses = ["10.0.0.0/24"]
[[access.members]]
person = "ada"
role = "admin"
[[access.members]]
person = "vi"
[[access.members]]
person = "red"
teams = ["redteam"]
[receive]
token_env = "SENDERS"
"""
PATIENCE_S = 20
MEMBERS = ("ada", "vi", "red")
NOBODY = ""
NOTE = ServerNote(f"http://{HOST}", "t0ken", 1, "instance", IN_MEMORY)

# method and path: what nobody gets, and what every member gets, whatever their role
ROUTES = {
    "GET /healthz": (200, {200}),
    "GET /metrics": (403, {403}),  # for this machine, or with its own token: test_sign_in.py
    "GET /api/v1/openapi.json": (200, {200}),  # a description that names nobody
    "GET /api/v1/views": (403, {200}),  # whose rows they are: test_api.py
    "GET /api/v1/views/*/rows": (403, {404}),  # there is no view of the name in braces
    "GET /api/v1/queries": (403, {200}),
    "GET /api/v1/queries/*/rows": (403, {404}),
    "POST /api/v1/query": (403, {400}),  # without a statement
    "GET /run/*": (403, {404}),  # there is no job of the name in braces
    "GET /mcp": (403, {405}),
    "DELETE /mcp": (403, {405}),
    "POST /mcp": (403, {400}),  # without a call; whose rows answers have: agents/test_agents.py
    "POST /api/v1/store/*": (403, {403}),  # for this machine, and with the token of the file
    "POST /api/v1/write": (401, {401}),  # with the token of senders: test_receive.py
    "POST /v1/metrics": (401, {401}),
    "GET /_stcore/health": (403, {503}),  # nothing has started here
    "GET /_stcore/metrics": (403, {403}),  # as /metrics
    "GET /_stcore/host-config": (403, {200}),
    "GET /media/*": (403, {404}),
    "PUT /_stcore/upload_file/*": (403, {403}),  # without the token of the page's form
    "DELETE /_stcore/upload_file/*": (403, {403}),
    "GET /component/*": (403, {404}),
    "GET /_stcore/bidi-components/*": (403, {404}),
    "GET /_stcore/stream": (403, {200}),  # the page: only a WebSocket is a stream
    "GET /auth/*": (403, {302}),
    "GET /oauth2callback": (403, {302}),
    "POST /_stcore/agent/interact": (403, {403}),
    "POST /_stcore/agent/mcp": (403, {400}),
    "GET /_stcore/agent/openapi.json": (403, {200}),  # a description that names nobody
    "* /_stcore/agent/*": (403, {405}),
    "GET /": (403, {200}),
}


@pytest.fixture(scope="module")
def app(new_store, tmp_path_factory):
    """Give the application of an empty database."""
    folder = tmp_path_factory.mktemp("routes")
    (folder / "goodput.toml").write_text(SETTINGS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GOODPUT_CONFIG", str(folder / "goodput.toml"))
        patch.setenv("SENDERS", "s3cret")
        settings.cache_clear()
        configure("127.0.0.1", 8501)
        senders = received(str(folder / "goodput.duckdb"))
        made = create_app(new_store(), NOTE, senders, names=(HOST,))
        yield made._build_starlette_app()
    Runtime._instance = None
    current.require_sign_in(is_required=False)
    settings.cache_clear()


@pytest.fixture(autouse=True)
def _config(configured):
    """Let routes read the settings while they answer."""
    configured(SETTINGS)


def ask(app, path, person=NOBODY, method="GET", **headers):
    """Return status and body of a request with a path as it is, dots and all."""
    of_person = {"x-forwarded-user": person} if person else {}
    given = {"host": HOST, "content-length": "2", **of_person, **headers}
    scope = {
        "type": "http", "method": method, "path": path, "raw_path": path.encode(), "root_path": "",
        "scheme": "http", "query_string": b"", "client": ("10.0.0.7", 1), "server": (HOST, 80),
        "http_version": "1.1", "headers": [(k.encode(), v.encode()) for k, v in given.items()],
    }  # fmt: skip
    sent = []
    asked = iter([{"type": "http.request", "body": b"{}", "more_body": False}])

    async def receive():
        return next(asked, None) or await asyncio.Event().wait()

    async def send(message):
        sent.append(message)

    asyncio.run(asyncio.wait_for(app(scope, receive, send), PATIENCE_S))
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])


def routes_of(app):
    """Return methods and paths of an application, its pages as `GET /`."""
    return {
        f"{method} {getattr(route, 'path', '') or '/'}"
        for route in app.routes
        for method in (getattr(route, "methods", None) or {"GET"}) - {"HEAD", "OPTIONS"}
    }


def test_every_route_is_open_refused_or_for_members(app):
    found = routes_of(app)
    expected = {route: next((r for r in ROUTES if fnmatch(route, r)), None) for route in found}
    assert None not in expected.values(), expected
    assert set(expected.values()) == set(ROUTES), "a row without a route"

    for route, row in expected.items():
        method, _, path = route.partition(" ")
        path = path.replace("{", "").replace("}", "").replace(":path", "")
        of_nobody, of_members = ROUTES[str(row)]
        assert ask(app, path, NOBODY, method)[0] == of_nobody, route
        for person in MEMBERS:
            assert {ask(app, path, person, method)[0]} == of_members, (route, person)


@each("../" * 9, "..%2f" * 9, "..\\" * 9, "%2e%2e/" * 9, "./" + "../" * 9, "/" + "../" * 9)
def test_no_path_leads_out_of_the_dashboard(app, up):
    below = {route.partition(" ")[2].partition("{")[0].rstrip("/") for route in routes_of(app)}
    for start in sorted(below | {"/static", "/app/static", "/auth", "/api/v1/store"}):
        for end in ("etc/passwd", "proc/self/environ", "etc//passwd\0.js"):
            status, body = ask(app, f"{start}/{up}{end}", "ada")
            assert b"root:" not in body, (start, up)
            assert b"PATH=" not in body, (start, up)
            assert status != 500, (start, up)


@each(
    ("vi", [1], 403, b"by operators who see all teams"),
    ("red", [1], 403, b"by operators who see all teams"),
    ("ada", [1, 51], 413, b"at most 50 MiB (upload_max_mib)"),
    ("ada", [40] * 5, 403, b"XSRF"),  # of Streamlit: what a page asks for comes to it
    ("ada", [40] * 6, 429, b"at most 200 MiB an hour (uploads_per_hour_mib)"),
)
def test_an_upload_is_of_who_may_replay_and_has_limits(app, person, sizes, status, said):
    app.middleware_stack = None  # who has uploaded nothing
    asked = [{"content-length": str((mib << 20) - 1)} for mib in sizes]
    found = [ask(app, "/_stcore/upload_file/s/f", person, "PUT", **one) for one in asked][-1]

    assert found[0] == status
    assert said in found[1]


ADA = Identity("ada", frozenset({Role.ADMIN}))
RED = Identity("red", teams=frozenset({"redteam"}))
ROWS = b"account,cost\nnlp,12\n"


def test_a_file_of_a_page_is_given_to_its_owner_alone(app):
    manager = Runtime._instance.media_file_mgr
    with current.request_of(ADA, "192.0.2.9"):
        url = manager.add(ROWS, "text/csv", "1", "a.csv", is_for_static_download=True)

    assert ask(app, url, "ada") == (200, ROWS)
    for person in ("vi", "red"):
        assert ask(app, url, person)[0] == 404
        assert ask(app, f"{url}.csv", person)[0] == 404
    assert ask(app, url)[0] == 403

    with current.request_of(RED, "192.0.2.9"):  # the same rows are on a page of theirs
        assert manager.add(ROWS, "text/csv", "2", "a.csv", is_for_static_download=True) == url
    assert ask(app, url, "red") == (200, ROWS)


def test_a_file_that_is_gone_has_no_owner():
    media = OwnedMedia("/media")
    with current.request_of(ADA, "192.0.2.9"):
        kept = media.load_and_get_id(ROWS, "text/csv", MediaFileKind.DOWNLOADABLE)
        assert media.get_file(f"{kept}.csv").content == ROWS
        media.delete_file(kept)

        with pytest.raises(MediaFileStorageError):
            media.get_file(f"{kept}.csv")
    assert not media._owners
