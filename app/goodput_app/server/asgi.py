"""The one process of `goodput serve`: dashboard, metrics and the database for other processes.

It owns the DuckDB file. Pages and routes of this process read it through a cursor each; a command
line in a second process finds the note beside the file and sends its calls to `/api/v1/store/`,
which answers on the loopback only and only to who can read that note.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import ipaddress
import logging
import os
import secrets
import signal
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import uvicorn
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from goodput_app import dashboard
from goodput_app.dashboard import theme
from goodput_app.dashboard.state import use_store
from goodput_app.server import metrics
from goodput_app.server.background import Upkeep
from goodput_app.server.index_page import IndexPage
from goodput_app.server.listen import DEFAULT_ADDRESS, covers_loopback, listen, url_of
from goodput_app.settings import settings
from goodput_billing.delivery.schedule import delivering
from goodput_ingest.live import status as live_status
from goodput_ingest.live.scheduler import Collection
from goodput_ingest.live.store_lease import Held, sole_collector
from goodput_queries.errors import GoodputError, StoreError
from goodput_queries.evidence.batch import Loaded
from goodput_queries.storage import remote
from goodput_queries.storage.remote import LOOPBACK_HOSTS, RemoteStore, ServerNote
from goodput_queries.storage.store import IN_MEMORY, LocalStore, open_store

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence

    import polars as pl
    from starlette.requests import Request
    from streamlit import App

    from goodput_billing.delivery.deliver import Plan
    from goodput_ingest.live.config import Collector

log = logging.getLogger(__name__)

MAIN_SCRIPT = Path(str(dashboard.__file__)).with_name("main.py")
BUILD_EVERY_S = 3.0  # looks whether something was loaded; if not, that is two short selects
GRACE_S = 5  # for open requests, after which Ctrl-C means it
LOAD_MAX_BYTES = 1 << 30
CALL_MAX_BYTES = 1 << 20
ARROW = "application/vnd.apache.arrow.stream"
PROXY_HEADERS = frozenset({"forwarded", "x-forwarded-for", "x-real-ip"})

STREAMLIT_CONFIG: dict[str, Any] = {
    "browser.gatherUsageStats": False,
    "client.toolbarMode": "minimal",
    "runner.postScriptGC": False,  # 11 -> 104 reruns/s at 20 sessions
    "server.fileWatcherType": "none",  # an installed package does not change under its server
    "server.headless": True,
}


def serve(
    path: str | Path,
    port: int | None = None,
    address: str = DEFAULT_ADDRESS,
    *,
    sources: Sequence[Collector] = (),
    statements: Plan | None = None,
    on_ready: Callable[[str], None] = lambda _url: None,
) -> None:
    """Serve the database at `path` until Ctrl-C or SIGTERM; `on_ready` gets the URL that answers.

    sources: live ones, polled meanwhile. statements: where they are delivered. Without a
    port it is 8501 or the next free one. Raises GoodputError where the port is taken or the
    database is served already.
    """
    is_new = not (_database(path) == IN_MEMORY or Path(path).exists())
    if is_new:
        listen(address, port).close()  # a taken port is to leave no empty database behind
    store = open_store(
        path, evaluation_counts=settings().evaluation_counts, objectives=settings().objectives
    )
    if isinstance(store, RemoteStore):
        store.close()
        raise StoreError(
            f"{path}: process {store.pid} serves this database at {store.url} already."
        )
    assert isinstance(store, LocalStore)  # noqa: S101 -- the other kind was answered above
    with contextlib.ExitStack() as stack:
        stack.callback(store.close)
        sockets = [stack.enter_context(contextlib.closing(listen(address, port)))]
        if not covers_loopback(address):
            sockets.append(stack.enter_context(contextlib.closing(listen(DEFAULT_ADDRESS, 0))))
        url = url_of(address, sockets[0])
        note = ServerNote(
            url=url if len(sockets) == 1 else url_of(DEFAULT_ADDRESS, sockets[1]),
            token=secrets.token_urlsafe(32),
            pid=os.getpid(),
            instance=secrets.token_hex(16),
            database=_database(path),
        )
        configure(address, sockets[0].getsockname()[1])
        server = _Server(
            uvicorn.Config(
                create_app(store, note, sources, statements),
                access_log=False,
                log_level="warning",
                timeout_graceful_shutdown=GRACE_S,
                use_colors=False,
                ws="websockets-sansio",
            ),
            on_answer=lambda: on_ready(url),
            health_url=f"{note.url}/healthz",
        )
        for signal_number in (signal.SIGINT, signal.SIGTERM):
            # uvicorn stops on these, then raises them again for whoever was there before it
            signal.signal(signal_number, lambda *_: None)
        server.run(sockets=sockets)
        if not server.started:
            raise GoodputError(f"{path}: the server did not start; the lines above say why.")


def create_app(
    store: LocalStore,
    note: ServerNote,
    sources: Sequence[Collector] = (),
    statements: Plan | None = None,
) -> App:
    """Return the ASGI application: pages, `/healthz`, `/metrics` and the store's calls.

    Its lifespan leaves the note beside the database, polls the live sources, delivers
    statements and keeps the ledger up to date; at the end it removes the note and closes the store.
    """
    from streamlit import App  # noqa: PLC0415 -- half a second that only a server needs

    @contextlib.asynccontextmanager
    async def lifespan(_app: App) -> AsyncIterator[None]:
        use_store(store)
        is_file = note.database != IN_MEMORY and not store.is_read_only
        if is_file:
            remote.write_note(note)
        is_over = asyncio.Event()
        try:
            with _collecting(store, sources) as collection, delivering(store, statements):
                building = asyncio.create_task(_keep_built(store, is_over))
                try:
                    yield
                finally:
                    is_over.set()
                    collection.end()  # what waits for the build to write ends with it
                    await building  # a file that is in use cannot be closed
        finally:
            if is_file:
                remote.remove_note(note)
            use_store(None)
            store.close()

    return App(
        MAIN_SCRIPT,
        lifespan=lifespan,
        routes=routes(store, note),
        middleware=[Middleware(IndexPage)],
    )


def routes(store: LocalStore, note: ServerNote) -> list[Route]:
    """Return the routes other than the pages."""

    def healthz(_request: Request) -> Response:
        try:
            store.read("select 1", timeout_s=remote.HEALTH_TIMEOUT_S)
            status, code = "ok", 200
        except GoodputError:  # after a full disk DuckDB answers nothing until it is opened again
            log.exception("the database does not answer; free some space and start again")
            status, code = "the database does not answer", 503
        return JSONResponse(
            {"status": status, "version": version("goodput"), "instance": note.instance},
            status_code=code,
            headers={"Cache-Control": "no-store"},
        )

    def prometheus(_request: Request) -> Response:
        try:
            text = metrics.exposition(store)
        except GoodputError as error:
            return PlainTextResponse(f"{error}\n", status_code=503)
        return PlainTextResponse(text, media_type=metrics.CONTENT_TYPE)

    def load(body: bytes) -> Response:
        batch = remote.batch_of(body)
        if batch.table == live_status.TABLE:
            live_status.keep(store, batch)
            return JSONResponse(vars(Loaded(batch.rows.height, 0, 0, is_repeat=False)))
        return JSONResponse(vars(store.load(batch)))

    def read(body: bytes) -> Response:
        sql, parameters, scope, timeout_s = remote.query_of(body)
        return _arrow(store.read(sql, parameters, scope=scope, timeout_s=timeout_s))

    def build(body: bytes) -> Response:
        head, _ = remote.unpack(body)
        return _arrow(store.build(is_full=bool(head["is_full"])))

    def call(name: str, answer: Callable[[bytes], Response], max_bytes: int) -> Route:
        async def endpoint(request: Request) -> Response:
            if (refusal := _refusal(request, note.token)) is not None:
                return refusal
            if (body := await _body(request, max_bytes)) is None:
                too_long = StoreError(f"`{name}` takes at most {max_bytes} bytes a call.")
                return _stated(too_long, 413)
            return await run_in_threadpool(_answered, name, answer, body)

        return Route(f"/api/v1/store/{name}", endpoint, methods=["POST"])

    return [
        Route("/healthz", healthz),
        Route("/metrics", prometheus),
        call("load", load, LOAD_MAX_BYTES),
        call("read", read, CALL_MAX_BYTES),
        call("build", build, CALL_MAX_BYTES),
    ]


def configure(address: str, port: int) -> None:
    """Give Streamlit its settings: ours, the theme's, and where it listens."""
    from streamlit.runtime.pages_manager import PagesManager  # noqa: PLC0415 -- as in create_app
    from streamlit.web.bootstrap import load_config_options  # noqa: PLC0415

    # what `st.navigation` sets when it first runs: a link that comes before that finds its page too
    PagesManager.uses_pages_directory = False
    load_config_options(
        {
            **STREAMLIT_CONFIG,
            **theme.STREAMLIT_CONFIG,
            "server.address": address,
            "server.port": port,
        }
    )


async def _keep_built(store: LocalStore, is_over: asyncio.Event) -> None:
    """Bring the ledger up to date at the start and whenever something was loaded since."""
    said, upkeep = "", Upkeep(store)
    while not is_over.is_set():
        try:
            await run_in_threadpool(upkeep.run)
            said = ""
        except GoodputError as error:
            if str(error) != said:  # once, not every few seconds
                said = str(error)
                log.error("the ledger is not up to date: %s", said)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(is_over.wait(), BUILD_EVERY_S)


@contextlib.contextmanager
def _collecting(store: LocalStore, sources: Sequence[Collector]) -> Iterator[Collection]:
    """Ask live sources for the length of a block, unless another process does already."""
    with contextlib.ExitStack() as stack:
        try:
            if sources:
                stack.enter_context(sole_collector(store.path))
        except StoreError as error:
            log.warning("%s This server asks no live source.", error)
            sources = ()
        collection = Collection(sources, Held(store), earliest=settings().ingest.earliest_at)
        collection.start()
        try:
            yield collection
        finally:
            if late := collection.stop(GRACE_S):
                log.warning("not waited for: %s", ", ".join(late))


class _Server(uvicorn.Server):
    """Uvicorn that reports readiness once it answers."""

    def __init__(
        self, config: uvicorn.Config, *, on_answer: Callable[[], None], health_url: str
    ) -> None:
        super().__init__(config)
        self._on_answer = on_answer
        self._health_url = health_url

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, request `/healthz` over the network, then report readiness."""
        await super().startup(sockets)
        if self.started:
            async with httpx.AsyncClient(
                trust_env=False, timeout=remote.HEALTH_TIMEOUT_S
            ) as client:
                (await client.get(self._health_url)).raise_for_status()
            self._on_answer()


def _refusal(request: Request, token: str) -> Response | None:
    """Return why a call for the database is refused, None where it is not.

    Only a process of this machine may call, directly, under a loopback name: a page in a browser
    that rebinds its own name to 127.0.0.1, or a proxy that passes strangers on, is none.
    """
    is_direct = PROXY_HEADERS.isdisjoint(request.headers.keys())
    if not (
        is_direct
        and request.client is not None
        and _is_loopback(request.client.host)
        and request.url.hostname in LOOPBACK_HOSTS
    ):
        return _stated(StoreError("the database is served to processes of its own machine."), 403)
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    is_right = hmac.compare_digest(given.strip().encode(), token.encode())
    if scheme.lower() != "bearer" or not is_right:
        return _stated(StoreError("the token is missing or not this server's."), 401)
    return None


async def _body(request: Request, max_bytes: int) -> bytes | None:
    """Return the body of a request, None as soon as it is known to be over the limit."""
    declared = request.headers.get("content-length", "0")
    if not declared.isdigit() or int(declared) > max_bytes:
        return None
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > max_bytes:
            return None
    return bytes(body)


def _answered(name: str, answer: Callable[[bytes], Response], body: bytes) -> Response:
    """Return the answer to a call; a stated failure keeps its class and sentence."""
    try:
        return answer(body)
    except GoodputError as error:
        return _stated(error, 422)
    except (ValueError, TypeError, KeyError) as error:
        log.warning("store call %s: %s: %s", name, type(error).__name__, error)
        return _stated(StoreError(f"this is not a call of `{name}` as this version knows it."), 400)


def _stated(error: GoodputError, status: int) -> Response:
    return JSONResponse({"error": type(error).__name__, "message": str(error)}, status_code=status)


def _arrow(frame: pl.DataFrame) -> Response:
    return Response(remote.packed(frame), media_type=ARROW)


def _is_loopback(host: str) -> bool:
    with contextlib.suppress(ValueError):
        address = ipaddress.ip_address(host)
        mapped = getattr(address, "ipv4_mapped", None)
        return (mapped or address).is_loopback
    return False


def _database(path: str | Path) -> str:
    return IN_MEMORY if str(path) == IN_MEMORY else str(Path(path).resolve())
