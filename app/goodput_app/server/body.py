"""The body of a request, up to a limit."""

from starlette.requests import Request


async def limited_body(request: Request, max_bytes: int) -> bytes | None:
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
