"""The one process of `goodput serve`: dashboard, metrics and the database for other processes.

It owns the DuckDB file. Pages and routes of this process read it through a cursor each; a command
line in a second process finds the note beside the file and sends its calls to `/api/v1/store/`,
which answers on the loopback only and only to who can read that note.
"""

import asyncio
import contextlib
import logging
import os
import secrets
import signal
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from streamlit import App

from goodput_app.access import audit, current, oidc
from goodput_app.notify.notifier import Plan as NotificationPlan
from goodput_app.notify.notifier import notifying
from goodput_app.process import turns
from goodput_app.process.store import use_store
from goodput_app.server import metrics_access, streamlit_theme
from goodput_app.server.agents.route import mcp_route
from goodput_app.server.allowed_hosts import AllowedHosts
from goodput_app.server.api.routes import api_routes
from goodput_app.server.background import Upkeep
from goodput_app.server.base_path import BasePath
from goodput_app.server.body import limited_body
from goodput_app.server.compressed_assets import CompressedAssets
from goodput_app.server.health import health_route
from goodput_app.server.http_server import GRACE_S, HttpServer, uvicorn_config
from goodput_app.server.index_page import IndexPage
from goodput_app.server.job_page import job_route
from goodput_app.server.listen import (
    DEFAULT_ADDRESS,
    covers_loopback,
    is_loopback,
    listen,
    url_of,
)  # fmt: skip
from goodput_app.server.local_request import may_be_local
from goodput_app.server.metrics.exposition import Metrics
from goodput_app.server.metrics.push import pushing
from goodput_app.server.receive import receive_routes
from goodput_app.server.sign_in import SignIn
from goodput_app.server.streamlit_routes import StreamlitRoutes
from goodput_app.server.viewers import CountViewers, Viewers
from goodput_app.settings import settings
from goodput_billing.delivery.deliver import Plan
from goodput_billing.delivery.schedule import delivering
from goodput_ingest.live import status as live_status
from goodput_ingest.live.config import Collector
from goodput_ingest.live.scheduler import Collection
from goodput_ingest.live.store_lease import Held, collector_lock
from goodput_ingest.received.live import Received
from goodput_queries import audit as audit_log
from goodput_queries import remote, saved_queries
from goodput_queries.database import LocalStore, open_store
from goodput_queries.errors import GoodputError, StoreError
from goodput_queries.evidence.batch import Batch, Loaded
from goodput_queries.remote import RemoteStore, ServerNote
from goodput_queries.storage.opening import IN_MEMORY

log = logging.getLogger(__name__)

MAIN_SCRIPT = Path(__file__).parents[1] / "dashboard" / "main.py"
BUILD_EVERY_S = 3.0  # looks whether something was loaded; if not, that is two short selects
LOAD_MAX_BYTES = 1 << 30
CALL_MAX_BYTES = 1 << 20
ARROW = "application/vnd.apache.arrow.stream"

STREAMLIT_CONFIG: dict[str, Any] = {
    "browser.gatherUsageStats": False,
    "client.toolbarMode": "minimal",
    "global.developmentMode": False,  # on by itself where packages lie in a folder of another name
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
    notifications: NotificationPlan | None = None,
    on_ready: Callable[[str], None] = lambda _url: None,
) -> None:
    """Serve the database at `path` until Ctrl-C or SIGTERM; `on_ready` gets the URL that answers.

    sources: live ones, polled meanwhile. statements: where they are delivered. notifications: who
    is sent findings. Without a port it is 8501 or the next free one. Raises GoodputError where the
    port is taken or the database is served already.
    """
    is_new = not (_database(path) == IN_MEMORY or Path(path).exists())
    if is_new:
        listen(address, port).close()  # a taken port is to leave no empty database behind
    with contextlib.ExitStack() as stack:
        stack.enter_context(turns.of_a_server())
        store = turns.with_later_threads(lambda: _opened(path))
        stack.callback(store.close)
        sockets = [stack.enter_context(contextlib.closing(listen(address, port)))]
        if not covers_loopback(address):
            sockets.append(stack.enter_context(contextlib.closing(listen(DEFAULT_ADDRESS, 0))))
        url, access = url_of(address, sockets[0]), settings().access
        note = ServerNote(
            url=url if len(sockets) == 1 else url_of(DEFAULT_ADDRESS, sockets[1]),
            token=secrets.token_urlsafe(32),
            pid=os.getpid(),
            instance=secrets.token_hex(16),
            database=_database(path),
        )
        configure(address, sockets[0].getsockname()[1])
        app = create_app(
            store,
            note,
            sources,
            statements,
            notifications,
            names=access.names(is_loopback=is_loopback(address), public_url=settings().public_url),
        )
        server = HttpServer(
            uvicorn_config(app, access),
            on_answer=lambda: on_ready(access.public_url or url),
            health_url=f"{note.url}/healthz",
        )
        for signal_number in (signal.SIGINT, signal.SIGTERM):
            # uvicorn stops on these, then raises them again for whoever was there before it
            signal.signal(signal_number, lambda *_: None)
        server.run(sockets=sockets)
        if not server.started:
            raise GoodputError(f"{path}: the server did not start; the lines above say why.")


def _opened(path: str | Path) -> LocalStore:
    """Open the database; raises StoreError where a server has it open already."""
    store = open_store(path, **settings().store_options)
    if isinstance(store, RemoteStore):
        store.close()
        raise StoreError(
            f"{path}: process {store.pid} serves this database at {store.url} already."
        )
    assert isinstance(store, LocalStore)  # noqa: S101 -- the other kind was answered above
    return store


def create_app(
    store: LocalStore,
    note: ServerNote,
    sources: Sequence[Collector] = (),
    statements: Plan | None = None,
    notifications: NotificationPlan | None = None,
    *,
    names: Sequence[str] | None = None,
) -> App:
    """Return the ASGI application: pages, `/healthz`, `/metrics` and the store's calls.

    names: hosts that are answered; None: every one.
    """
    from goodput_app.server.media import DashboardApp  # noqa: PLC0415 -- half a second that only a server needs

    access, viewers = settings().access, Viewers()
    upkeep, metrics = Upkeep(store, viewers, sources=sources), Metrics(store)
    current.require_sign_in(is_required=access.sign_in is not None)

    async def recorded(who: str, action: str, subject: str | None, address: str) -> None:
        await run_in_threadpool(audit.write, store, who, action, subject, address)

    return DashboardApp(
        MAIN_SCRIPT,
        lifespan=_lifespan(store, upkeep, metrics, note, sources, statements, notifications),
        routes=[*routes(store, note, upkeep, metrics), *receive_routes(sources)],
        middleware=[
            Middleware(BasePath, settings().base_path, of_streamlit=bool(access.base_path)),
            Middleware(AllowedHosts, names),
            Middleware(SignIn, access, recorded, settings().public_url),
            Middleware(StreamlitRoutes),
            Middleware(CountViewers, viewers),
            Middleware(IndexPage, access.base_path.strip("/")),
            Middleware(CompressedAssets, access.base_path.strip("/")),
        ],
        secrets=oidc.streamlit_secrets(access),
    )


def _lifespan(
    store: LocalStore,
    upkeep: Upkeep,
    metrics: Metrics,
    note: ServerNote,
    sources: Sequence[Collector],
    statements: Plan | None,
    notifications: NotificationPlan | None,
) -> Callable[[App], contextlib.AbstractAsyncContextManager[None]]:
    """Return what goes on while the application serves.

    It leaves the note beside the database, polls the live sources, delivers statements, notifies of
    findings, pushes metrics and keeps the ledger up to date; at the end it removes the note and
    closes the store.
    """

    @contextlib.asynccontextmanager
    async def lifespan(_app: App) -> AsyncIterator[None]:
        use_store(store)
        is_file = note.database != IN_MEMORY and not store.is_read_only
        if is_file:
            remote.write_note(note)
        is_over = asyncio.Event()
        try:
            with (
                _collecting(store, sources) as collection,
                delivering(store, statements),
                notifying(store, notifications),
                pushing(store, metrics, settings().otlp),
            ):
                building = asyncio.create_task(_keep_built(upkeep, is_over))
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

    return lifespan


def routes(store: LocalStore, note: ServerNote, upkeep: Upkeep, metrics: Metrics) -> list[Route]:
    """Return the routes other than the pages."""

    def prometheus(request: Request) -> Response:
        if (refusal := metrics_access.refusal(request, settings().access)) is not None:
            return refusal
        try:
            text, content_type = metrics.answer(request.headers.get("accept", ""))
        except GoodputError as error:
            return PlainTextResponse(f"{error}\n", status_code=503)
        return Response(text, headers={"Content-Type": content_type})

    def load(body: bytes) -> Response:
        return JSONResponse(vars(_loaded(store, *remote.batch_of(body))))

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
            if (body := await limited_body(request, max_bytes)) is None:
                too_long = StoreError(f"`{name}` takes at most {max_bytes} bytes a call.")
                return _stated(too_long, 413)
            return await run_in_threadpool(_answered, name, answer, body)

        return Route(f"/api/v1/store/{name}", endpoint, methods=["POST"])

    return [
        health_route(store, note.instance, upkeep),
        Route("/metrics", prometheus),
        call("load", load, LOAD_MAX_BYTES),
        call("read", read, CALL_MAX_BYTES),
        call("build", build, CALL_MAX_BYTES),
        call("backup", partial(_backed_up, store), CALL_MAX_BYTES),
        *api_routes(store),
        mcp_route(store, note.url),
        job_route(store, note.url),
    ]


def _backed_up(store: LocalStore, body: bytes) -> Response:
    head, _ = remote.unpack(body)
    return _arrow(store.back_up(str(head["target"])))


def _loaded(store: LocalStore, batch: Batch, is_polled: bool) -> Loaded:
    """Load a batch; of what no view reads nothing is to be built."""
    kept = {
        live_status.TABLE: live_status.keep,
        audit_log.TABLE: audit_log.keep,
        saved_queries.TABLE: saved_queries.keep,
    }
    keep = kept.get(batch.table)
    if keep is None:
        return store.load(batch, is_polled=is_polled)
    keep(store, batch)
    return Loaded(batch.rows.height, 0, 0, is_repeat=False)


def configure(address: str, port: int) -> None:
    """Give Streamlit its settings: ours, the theme's, and where it listens."""
    # Streamlit imports it with the first table; a figure drawn meanwhile would find half of it
    import pandas  # type: ignore[import-untyped]  # noqa: F401, PLC0415 -- as above
    from streamlit.runtime.pages_manager import PagesManager  # noqa: PLC0415 -- as in create_app
    from streamlit.web.bootstrap import load_config_options  # noqa: PLC0415 -- as above

    # what `st.navigation` sets when it first runs: a link that comes before that finds its page too
    PagesManager.uses_pages_directory = False
    load_config_options(
        {
            **STREAMLIT_CONFIG,
            **streamlit_theme.THEME,
            "server.address": address,
            "server.port": port,
            "server.maxUploadSize": settings().replay.upload_max_mib,
            "server.baseUrlPath": settings().access.base_path,
            "server.trustedUserHeaders": current.TRUSTED_USER_HEADERS,
        }
    )


async def _keep_built(upkeep: Upkeep, is_over: asyncio.Event) -> None:
    """Bring the ledger up to date at the start and whenever something was loaded since."""
    said = ""
    # a build comes after kept answers, as pages do, and not before these
    with ThreadPoolExecutor(1, "goodput-build", turns.come_later) as thread:
        while not is_over.is_set():
            try:
                await asyncio.get_running_loop().run_in_executor(thread, upkeep.run)
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
                stack.enter_context(collector_lock(store.path))
        except StoreError as error:
            log.warning("%s This server asks no live source.", error)
            sources = [one for one in sources if isinstance(one.source, Received)]
        collection = Collection(sources, Held(store), earliest=settings().ingest.earliest_at)
        collection.start()
        try:
            yield collection
        finally:
            if late := collection.stop(GRACE_S):
                log.warning("not waited for: %s", ", ".join(late))


def _refusal(request: Request, token: str) -> Response | None:
    """Return why a call for the database is refused, None where it is not."""
    if not may_be_local(request, settings().access):
        return _stated(StoreError("the database is served to processes of its own machine."), 403)
    if not metrics_access.has_token(request, token):
        return _stated(StoreError("the token is missing or not this server's."), 401)
    return None


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


def _database(path: str | Path) -> str:
    return IN_MEMORY if str(path) == IN_MEMORY else str(Path(path).resolve())
