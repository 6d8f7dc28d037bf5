"""The web page around the dashboard, with the address of its server and the key that searches.

Streamlit's page looks for its server below its own path first: `/findings/_stcore/health` is a 404
and an error in the browser's console each time. All pages are one level deep, so that the server is
where `.` points to, behind a proxy with a prefix, too. A deeper address (`/old/fleet`) leads to its
last part on that level.

A shortcut of a Streamlit button is a letter, a digit or a named key. `/`, which searches in most
tools of operations people, presses the button of the search, unless something is being written.

A dialog of Streamlit has the focus itself; that of the search gives it to what is typed in. A
popover opens at the end of the page, and has the focus where a key opened it.

Tables are drawn on a canvas and take clicks alone: Enter on a cell is a click on its text, where a
name opens its page. The table itself has the place of a cell.
"""

from urllib.parse import quote

from starlette.types import ASGIApp, Message, Receive, Scope, Send

SEARCH_KEY = "open_search"  # of the button in `components/search.py`; Streamlit makes it a class
CELL = "td[id^=glide-cell-]"  # with the focus; its id ends in column and row
NAME_PX = 20  # from the left of its cell
TEXT = ".st-key-search_text input"  # of the search
OPENS = "[data-testid=stPopoverButton][aria-expanded=false]"
OPENED = "[data-testid=stPopoverBody] :is(button, input, textarea, a):not([disabled])"
SCRIPT = f"""<script>
window.__streamlit = {{BACKEND_BASE_URL: new URL(".", location.href).href}};
document.addEventListener("keydown", (event) => {{
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select, [contenteditable=true]")) return;
  const search = document.querySelector(".st-key-{SEARCH_KEY} button");
  if (!search) return;
  event.preventDefault();
  search.click();
}});
const focus = (wanted, tries = 60) => {{
  const part = document.querySelector(wanted);
  if (part) part.focus();
  else if (tries) setTimeout(focus, 50, wanted, tries - 1);
}};
document.addEventListener("focusin", (event) => {{
  if (event.target.matches("[role=dialog]")) focus("{TEXT}");
}});
document.addEventListener("keydown", (event) => {{
  if ([" ", "Enter"].includes(event.key) && event.target.matches("{OPENS}")) focus("{OPENED}");
}});
document.addEventListener("keydown", (event) => {{
  const cell = event.target.closest("{CELL}");
  if (event.key !== "Enter" || event.ctrlKey || event.metaKey || event.altKey || !cell) return;
  const canvas = cell.closest("canvas");
  let part = canvas[Object.keys(canvas).find((name) => name.startsWith("__reactFiber$"))];
  while (part && !part.ref?.current?.getBounds) part = part.return;
  if (!part) return;
  const [column, row] = cell.id.split("-").slice(2).map(Number);
  const box = part.ref.current.getBounds(column, row);
  const at = {{bubbles: true, clientX: box.x + {NAME_PX}, clientY: box.y + box.height / 2}};
  for (const kind of ["pointerdown", "pointerup", "click"])
    canvas.dispatchEvent(new PointerEvent(kind, at));
}}, true);
</script>""".encode()
HEAD = b"<head>"
ROOT = b'<div id="root"'  # that this page alone has, and none that somebody downloads
_OF_ANOTHER_BODY = (b"content-length", b"etag", b"last-modified")


class IndexPage:
    """Middleware that adds `SCRIPT` to each answer that is a web page.

    base_path: the prefix of all addresses behind a proxy, without slashes at its ends.
    """

    def __init__(self, app: ASGIApp, base_path: str = "") -> None:
        self._app = app
        self._base_path = base_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; only those of a browser that opens a page are changed."""
        headers = scope.get("headers", [])
        accepts = b",".join(value for name, value in headers if name == b"accept")
        if scope["type"] != "http" or scope["method"] != "GET" or b"text/html" not in accepts:
            await self._app(scope, receive, send)
            return
        # what is packed, or not sent since the browser has it, cannot be changed
        left_out = (b"accept-encoding", b"if-none-match", b"if-modified-since")
        kept = [header for header in headers if header[0] not in left_out]
        path = scope["path"].strip("/").removeprefix(self._base_path).lstrip("/")
        await self._app({**scope, "headers": kept}, receive, _Changed(send, path))


class _Changed:
    """What sends an answer on, held back until it is whole if it is a web page."""

    def __init__(self, send: Send, path: str) -> None:
        """Take the path of the page below that of the dashboard."""
        self._send = send
        self._levels = path.split("/")
        self._start: Message | None = None
        self._body = b""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and _is_page(message):
            self._start = message
            return
        if message["type"] != "http.response.body" or self._start is None:
            await self._send(message)
            return
        self._body += message.get("body", b"")
        if message.get("more_body"):
            return
        is_index = ROOT in self._body
        if is_index and len(self._levels) > 1:
            await self._redirect("../" * (len(self._levels) - 1) + quote(self._levels[-1]))
            return
        body = self._body.replace(HEAD, HEAD + SCRIPT, 1) if is_index else self._body
        kept = [header for header in self._start["headers"] if header[0] not in _OF_ANOTHER_BODY]
        length = (b"content-length", str(len(body)).encode())
        await self._send({**self._start, "headers": [*kept, length]})
        await self._send({"type": "http.response.body", "body": body})

    async def _redirect(self, target: str) -> None:
        headers = [(b"location", target.encode())]
        await self._send({"type": "http.response.start", "status": 307, "headers": headers})
        await self._send({"type": "http.response.body"})


def _is_page(start: Message) -> bool:
    of_it = dict(start["headers"])
    return bool(start["status"] == 200 and of_it.get(b"content-type", b"").startswith(b"text/html"))
