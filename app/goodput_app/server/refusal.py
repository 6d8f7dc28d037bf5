"""An answer that ends a request before it reaches a page, for HTTP and for WebSockets."""

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

POLICY_VIOLATION = 1008


async def refuse(scope: Scope, receive: Receive, send: Send, response: Response) -> None:
    """Send an answer; a WebSocket is closed before it is accepted, which is a 403."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": ""})
        return
    response.headers["Cache-Control"] = "no-store"
    await response(scope, receive, send)
