"""Routes of Streamlit's own that are not for everybody: files that pages upload, and its metrics.

Streamlit keeps an uploaded file in memory as long as its session, from any page, of anybody.
"""

import contextlib
from collections import deque
from time import monotonic

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from goodput_app.access.current import current_identity
from goodput_app.access.identity import Action
from goodput_app.process import usage
from goodput_app.server import metrics_access
from goodput_app.server.refusal import refuse
from goodput_app.settings import settings

UPLOAD, METRICS = "/_stcore/upload_file/", "/_stcore/metrics"
HOUR_S = 3600.0
FORM_BYTES = 64 * 1024  # of a request around its file


class StreamlitRoutes:
    """Middleware that refuses uploads that no page asks for or that are too much."""

    def __init__(self, app: ASGIApp) -> None:
        """Take the application; who asks is known by then."""
        self._app = app
        self._uploads: dict[str, deque[tuple[float, int]]] = {}  # of a person: when, and bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or say why not."""
        refusal = None
        with contextlib.ExitStack() as held:
            if scope["type"] == "http" and scope["path"].endswith(METRICS):
                refusal = metrics_access.refusal(Request(scope), settings().access)
            elif scope["type"] == "http" and scope["method"] == "PUT" and UPLOAD in scope["path"]:
                refusal = self._refused_upload(Request(scope), held)
            if refusal is None:
                await self._app(scope, receive, send)
            else:
                await refuse(scope, receive, send, refusal)

    def _refused_upload(self, request: Request, held: contextlib.ExitStack) -> Response | None:
        """Return why an upload is refused; None, and count it, where it is not.

        held: what of the person's account is held until the file is in.

        Uploads are what the Data page replays: of who may, and sees all teams.
        """
        who, limits = current_identity(), settings().replay
        if who.teams is not None or not who.may(Action.REPLAY_RECORDING):
            return _said("Files are uploaded by operators who see all teams.", 403)
        length = request.headers.get("content-length", "")
        if not length.isdigit():
            return _said("An upload needs its length.", 411)
        if int(length) > (limits.upload_max_mib << 20) + FORM_BYTES:
            return _said(f"A file has at most {limits.upload_max_mib} MiB (upload_max_mib).", 413)
        account = usage.account()
        try:
            account.refuse_spent()
            held.enter_context(account.holding(int(length) / (1 << 20)))
        except usage.BusyError as error:
            return _said(str(error), 429, error.retry_after_s)
        now, sent = monotonic(), self._uploads.setdefault(who.name, deque())
        while sent and now - sent[0][0] >= HOUR_S:
            sent.popleft()
        if sum(size for _, size in sent) + int(length) > limits.uploads_per_hour_mib << 20:
            said = f"A person uploads at most {limits.uploads_per_hour_mib} MiB an hour"
            again_s = HOUR_S - (now - sent[0][0]) + 1 if sent else 1
            return _said(f"{said} (uploads_per_hour_mib).", 429, again_s)
        sent.append((now, int(length)))
        return None


def _said(sentence: str, status: int, again_s: float | None = None) -> Response:
    headers = {} if again_s is None else {"Retry-After": str(int(again_s))}
    return PlainTextResponse(f"{sentence}\n", status, headers)
