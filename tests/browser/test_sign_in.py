"""Sign-in by a real OpenID Connect provider, behind a real nginx that terminates TLS at a path.

The provider is `oidc-provider-mock`, which asks for no password; nginx has the block of
docs/access.md. One server serves all cases.
"""

import contextlib
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
import trustme
from playwright.sync_api import expect
from tests.app.receivers import free_port
from tests.app.served import program, running
from tests.browser.conftest import launch

from goodput_queries import audit
from goodput_queries.database import open_store

pytestmark = pytest.mark.machine
NGINX = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
ACCESS = Path(__file__).parents[2] / "docs" / "access.md"
PATIENCE_S = 60
PERSON = "ada@example.org"
SETTINGS = """
[access]
sign_in = "oidc"
[access.oidc]
issuer = "{issuer}"
client_id = "goodput"
client_secret_env = "CLIENT_SECRET"
cookie_secret_env = "COOKIE_SECRET"
redirect_uri = "{url}/oauth2callback"
[[access.members]]
group = "platform"
role = "admin"
"""
AROUND = "daemon off; pid {folder}/pid; events {{}} http {{ access_log off; {temporary} {block} }}"
TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


PATHS = (
    *("/", "/findings", "/media/a.csv", "/_stcore/host-config", "/_stcore/metrics", "/healthz"),
    *("/_stcore/upload_file/a/b", "/static/js/a.js", "/metrics"),
)


@dataclass(frozen=True)
class Site:
    """A dashboard at an HTTPS URL; direct: where the server itself listens."""

    url: str
    direct: str
    tls: ssl.SSLContext
    database: Path

    def client(self):
        """Return a browser without scripts."""
        return httpx.Client(verify=self.tls, timeout=PATIENCE_S, trust_env=False)


@pytest.fixture(scope="module")
def issuer():
    """Run the provider, which knows one person."""
    ada = {"sub": "ada", "email": PERSON, "email_verified": True, "groups": ["platform"]}
    port = free_port()
    command = [sys.executable, "-m", "oidc_provider_mock", "--port", str(port),
               "--user-claims", json.dumps(ada)]  # fmt: skip
    with program(command, stdout=None) as provider:
        assert any(f":{port}" in line for line in provider.stderr)
        yield f"http://localhost:{port}"


@pytest.fixture(scope="module")
def site(issuer, empty_database, tmp_path_factory):
    """Serve an empty database behind nginx."""
    if NGINX is None:
        pytest.skip("no nginx on this machine")
    folder = tmp_path_factory.mktemp("site")
    database = folder / "fleet.duckdb"
    shutil.copyfile(empty_database, database)
    inner, outer = free_port(), free_port()
    url = f"https://localhost:{outer}/goodput"
    (folder / "goodput.toml").write_text(SETTINGS.format(issuer=issuer, url=url))
    authority = trustme.CA()
    tls = ssl.create_default_context()
    authority.configure_trust(tls)
    certificate = authority.issue_cert("localhost")
    certificate.private_key_and_cert_chain_pem.write_to_path(folder / "tls.pem")
    block = re.findall(r"```nginx\n(.*?)```", ACCESS.read_text(), re.DOTALL)[0]
    for old, new in (
        ("listen 443", f"listen 127.0.0.1:{outer}"),
        ("127.0.0.1:8501", f"127.0.0.1:{inner}"),
        ("/etc/ssl/hpc.example.org.pem", f"{folder}/tls.pem"),
        ("/etc/ssl/hpc.example.org.key", f"{folder}/tls.pem"),
    ):
        assert old in block
        block = block.replace(old, new)
    temporary = "".join(f"{name}_temp_path {folder}/{name}; " for name in TEMPORARY)
    (folder / "nginx.conf").write_text(
        AROUND.format(folder=folder, temporary=temporary, block=block)
    )
    secrets = {"CLIENT_SECRET": "client", "COOKIE_SECRET": "c" * 32}
    with (
        subprocess.Popen([NGINX, "-c", str(folder / "nginx.conf"), "-e",
                          str(folder / "log")]) as nginx,
        running("serve", "--db", str(database), "--port", str(inner), cwd=folder,
                **secrets) as server,
    ):  # fmt: skip
        try:
            assert server.stdout.readline().strip() == url
            yield Site(url, f"http://127.0.0.1:{inner}", tls, database)
        finally:
            nginx.terminate()


@pytest.fixture
def trusting_page(browser):
    """Open a window of a Chromium that takes any certificate as valid.

    `ignore_https_errors` of a context repeats each request that meets a certificate instead: after
    32 of them over one page Chromium gives up with ERR_TOO_MANY_RETRIES.
    """
    trusting = launch(browser.browser_type, "--ignore-certificate-errors")
    yield trusting.new_page()
    trusting.close()


def handshake(site, client, **headers):
    """Return the answer to a browser that opens a WebSocket; 101: it is open."""
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
               "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}  # fmt: skip
    with client.stream("GET", f"{site.url}/_stcore/stream", headers=upgrade | headers) as answer:
        return answer.status_code


@contextlib.contextmanager
def signed_in(site, name):
    """Give a browser in which a person went through the provider's page."""
    with site.client() as client:
        page = client.get(f"{site.url}/sign-in", follow_redirects=True)
        back = client.post(page.url, data={"sub": name})
        client.get(back.headers["location"], follow_redirects=True)
        yield client


def log_of(site):
    with contextlib.closing(open_store(site.database)) as store:
        return audit.entries(store).select("who", "action", "from_address").rows()


def test_nothing_is_given_before_the_sign_in(site):
    with site.client() as client:
        for path in PATHS:
            assert client.get(f"{site.url}{path}").status_code == 401, path
        assert client.get(f"{site.direct}/findings").status_code == 401
        assert handshake(site, client) == 403
        forged = {"Cookie": "_streamlit_user=forged", "X-Forwarded-User": PERSON}
        assert client.get(f"{site.url}/", headers=forged).status_code == 401
        shown = client.get(f"{site.url}/", headers={"Accept": "text/html"})
    assert (shown.status_code, 'href="/goodput/sign-in"' in shown.text) == (401, True)


def test_every_answer_has_the_security_headers(site):
    with site.client() as client:
        for url in (f"{site.url}/", f"{site.direct}/healthz", f"{site.direct}/nope"):
            headers = client.get(url).headers
            assert "frame-ancestors 'none'" in headers["content-security-policy"]
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["referrer-policy"] == "no-referrer"
        foreign = client.get(f"{site.direct}/", headers={"Host": "rebound.example.org"})
    assert (foreign.status_code, "x-frame-options" in foreign.headers) == (421, True)


def test_a_member_is_let_in_with_a_cookie_of_this_site_alone(site):
    with signed_in(site, "ada") as client:
        assert client.get(f"{site.url}/").status_code == 200
        assert client.get(f"{site.url}/media/a.csv").status_code == 404
        signed = {c.name: c for c in client.cookies.jar}["_streamlit_user"]
        assert (signed.path, signed.secure) == ("/goodput", True)
        assert handshake(site, client) == 101
        assert handshake(site, client, Origin="https://evil.test") == 403
    with site.client() as forging:
        forging.cookies.set("_streamlit_user", f"{signed.value}x")
        assert handshake(site, forging) == 403


def test_a_person_signs_in_at_the_page_of_a_link_and_out(site, trusting_page):
    page = trusting_page
    page.set_default_timeout(PATIENCE_S * 1000)
    errors = []
    origins = set()

    def log(message):
        if message.type == "error" and site.url in message.location["url"]:
            errors.append(message.text)

    def note(request):
        origins.add(urlsplit(request.url).netloc)

    page.goto(f"{site.url}/data")
    page.get_by_role("link", name="Sign in").click()
    page.on("console", log)
    page.get_by_role("button", name="ada").first.click()
    expect(page.get_by_text(PERSON)).to_be_visible()
    assert page.url == f"{site.url}/data"
    page.on("request", note)
    page.reload()
    expect(page.get_by_text("Signed in (admin)")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("button", name="End session").click()
    expect(page.get_by_role("link", name="Sign in")).to_be_visible()

    assert [error for error in errors if "401" not in error] == []
    assert urlsplit(site.url).netloc in origins
    for action in ("sign in", "sign out"):
        assert (PERSON, action, "127.0.0.1") in log_of(site)
