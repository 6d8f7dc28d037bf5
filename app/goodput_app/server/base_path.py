"""The path of the dashboard behind its proxy: a request below it is the same as one at the root.

A proxy may pass the path on or remove it. The pages find their server by relative addresses, so
that both work. Streamlit's own paths stay below it where it signs people in.
"""

from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from goodput_app.server.sign_in import takes_tokens


class BasePath:
    """Middleware that removes a path such as `/goodput` from the beginning of all addresses.

    of_streamlit: Streamlit answers below the path itself, as where it signs people in: only the API
        is found there, too. Health and metrics have no answer at the public address then.
    """

    def __init__(self, app: ASGIApp, path: str, *, of_streamlit: bool) -> None:
        self._app = app
        self._path = path
        self._of_streamlit = of_streamlit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; what is not below the path is passed on as it is."""
        path = scope.get("path", "")
        if not self._path or not f"{path}/".startswith(f"{self._path}/"):
            await self._app(scope, receive, send)
            return
        rest = path.removeprefix(self._path)
        if not rest and scope["type"] == "http":  # pages look for their server beside themselves
            below = RedirectResponse(f"{self._path.rpartition('/')[2]}/", 307)
            await below(scope, receive, send)
            return
        if not self._of_streamlit or takes_tokens(rest):
            scope = {**scope, "path": rest, "raw_path": rest.encode()}
        await self._app(scope, receive, send)
