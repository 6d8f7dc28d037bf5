"""The pages of people who are not signed in, or whom no member of goodput.toml names."""

from html import escape
from urllib.parse import quote, unquote

from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, RedirectResponse
from starlette.types import Scope

SIGN_IN = "/sign-in"
WANTED = "goodput_page"  # the cookie that keeps the page of a link until its reader is signed in
WANTED_MAX_CHARS, WANTED_S = 2_000, 600
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Goodput</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; display: grid; place-items: center; min-height: 90vh; }
main { max-width: 28rem; padding: 1rem; }
a.button { display: inline-block; padding: .5rem 1.25rem; border: 1px solid; border-radius: .5rem;
  color: inherit; text-decoration: none; }
</style></head><body><main><h1>Goodput</h1>BODY</main></body></html>"""


def sign_in(scope: Scope, base: str) -> HTMLResponse:
    """Return the page with the link that begins a sign-in; base: the path of the dashboard."""
    asking = page("<p>Sign in to see this page.</p>" + link(f"{base}{SIGN_IN}", "Sign in"), 401)
    path = scope["path"].removeprefix(base)
    if query := scope.get("query_string", b"").decode("latin-1"):
        path += f"?{query}"
    if path != "/" and len(path) <= WANTED_MAX_CHARS:
        asking.set_cookie(
            WANTED, quote(path), WANTED_S, path=base or "/", httponly=True, samesite="lax"
        )
    return asking


def after_sign_in(scope: Scope, base: str) -> RedirectResponse | None:
    """Return the way to the page that somebody wanted before they signed in, None without one."""
    if scope["type"] != "http" or scope["path"] not in (f"{base}/", f"{base}{SIGN_IN}"):
        return None
    wanted = unquote(HTTPConnection(scope).cookies.get(WANTED, "")).lstrip("/\\")
    if not wanted and scope["path"] == f"{base}/":
        return None
    answer = RedirectResponse(f"./{wanted}", 302)  # a proxy may have removed the path
    answer.delete_cookie(WANTED, path=base or "/")
    return answer


def refused(sentence: str, sign_out_path: str | None) -> HTMLResponse:
    """Return the page that says why somebody gets nothing."""
    way_out = "" if sign_out_path is None else link(sign_out_path, "Sign out")
    return page(f"<p>{escape(sentence)}</p>{way_out}", 403)


def link(path: str, label: str) -> str:
    """Return a link that looks like a button."""
    return f'<p><a class="button" href="{escape(path)}">{label}</a></p>'


def page(body: str, status: int) -> HTMLResponse:
    """Return a page with some HTML in its middle."""
    return HTMLResponse(PAGE.replace("BODY", body), status)
