"""Every page in a real browser on four kinds of data: it is drawn, without any error, and is light.

Of the demo none breaks a rule of WCAG 2.1 A and AA. No page asks any host but its own server, and
one of the servers has no network at all.
`make sweep` does the same with the demo less each of its sources.
"""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote, urlsplit

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import expect
from tests.app.receivers import free_port
from tests.browser.conftest import WAIT_MS, serving
from tests.browser.steps import charts_drawn, settled
from tests.hostile_names import SHORT, load_hostile
from tests.recorded_session import SAMPLE
from tests.until import until

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries.database import LocalStore, open_store
from goodput_synthetic.demo import recipe

pytestmark = pytest.mark.machine
PAYLOAD_MAX_BYTES = 1_000_000
OF_THE_MENU = (
    *("Fleet", "Runs", "Nodes", "Health", "Findings", "Waste", "Network", "Cost", "Energy"),
    *("Data", "Explorer", "Compare", "Overview"),
)
NONE_CUT = """() => ![...document.querySelectorAll('[data-testid="stDataFrame"]')].some(table => {
    const cells = table.querySelector(".dvn-scroller")
    return table.checkVisibility() && cells && cells.scrollWidth > cells.clientWidth + 1
})"""
WITHOUT_NETWORK = "telemetry"
WITHOUT = "demo without "
RECIPE = recipe(SAMPLE.parent)
LESS = [f"{WITHOUT}{name}" for name in dict.fromkeys(step.path.name for step in RECIPE)]
KINDS = ("demo", "telemetry", "hostile names", "empty")
FIRST_RUN = "Where did the GPU-hours go?"
LINKS = {  # to one thing: its id, and a text that its page has
    "run?run": "select run_key, run_id from marts.runs order by length(run_key) desc",
    "nodes?node": "select node, node from marts.gpus order by length(node) desc",
    "gpu?gpu": "select gpu_uuid, 'GPU UUID' from marts.gpus order by length(gpu_uuid) desc",
    "network?slow_node": "select concat_ws('|', cluster, node), 'Open node' from marts.slow_nodes",
    "network?lost_link": """select concat_ws('|', cluster, node, kind, device, port,
        strftime(start_at, '%Y-%m-%d %H:%M:%S.%f')), 'Open node' from marts.link_events""",
    "health?incident": """select concat_ws('|', cluster, node, device,
        strftime(start_at, '%Y-%m-%d %H:%M:%S.%f')), 'Open GPU' from marts.gpu_incidents""",
    "explorer?metric": "select metric, metric from marts.other_metrics",
    "energy?headroom": """select concat_ws('|', cluster, node, gpu_model), 'Open node'
        from marts.power_headroom where read_gpus > 0""",
    "nosuch?page": "select 'x', 'The address is not of a page of Goodput.'",
}
UNREADABLE = re.compile(  # 2413:19:41, $29.3057, 1 Nodes, rack rack13, 7.394495505999885
    r"\d{3,}:\d\d:\d\d(?!\.\d)|\$[\d,]*\.(?:\d|\d{5,})\b|\b[Rr]ack rack"
    r"|(?<![\d.,:/ -])1 (?:Node|Job|Run|GPU|Finding)s\b|\bnan\b|\bNone\b(?! yet)"
    r"|(?<![\d.])(?:0\.0*[1-9]\d{5,}|[1-9]\d*\.\d{5,})"
)
WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]
OF_COLOURS = ["color-contrast", "link-in-text-block"]  # what else is the same in both schemes
IS_DARK = """is_dark => {
    const parts = getComputedStyle(document.querySelector(".stApp")).backgroundColor.match(/\\d+/g)
    return (Math.max(...parts.slice(0, 3).map(Number)) < 128) === is_dark
}"""
OUTSIDE_THE_MENU = ("query", "cost?part=prices", "report", "cost?part=what-if", "help",
                    "energy?part=idle", "energy?part=work", "?view=wall")  # fmt: skip
# as Back does, in the client that is there; until the script runs, or could have: that it does is
# not seen where it ends before it is drawn
OPEN = """path => new Promise(resolve => {
    setTimeout(resolve, 5000)
    const running = (_, observer) => { observer.disconnect(); resolve() }
    const app = document.querySelector('[data-testid="stApp"]')
    new MutationObserver(running).observe(app, {attributeFilter: ["data-test-script-state"]})
    history.pushState({}, "", path)
    dispatchEvent(new PopStateEvent("popstate", {state: {}}))
})"""


@pytest.fixture(scope="module")
def window(browser):
    """Give one window for all pages, and what it saw: errors, whom pages asked, bytes that came."""
    context = browser.new_context(viewport={"width": 1400, "height": 1000}, reduced_motion="reduce")
    page = context.new_page()
    seen = SimpleNamespace(errors=[], asked=set(), bytes_=0, violations={}, scheme="light")
    page.set_default_timeout(WAIT_MS)

    def log(message):
        if message.type == "error":
            seen.errors.append(f"{message.text} {message.location['url']}")

    def ask(url):
        if host := urlsplit(url).netloc:  # a `data:` or `blob:` URL asks nobody
            seen.asked.add(host)

    def receive(frame):
        seen.bytes_ += len(frame)

    page.on("console", log)
    page.on("pageerror", lambda error: seen.errors.append(str(error)))
    page.on("request", lambda request: ask(request.url))
    page.on("websocket", lambda socket: ask(socket.url))
    page.on("websocket", lambda socket: socket.on("framereceived", receive))
    yield page, seen
    context.close()


@pytest.fixture
def database(kind, empty_database, tmp_path, request):
    """Give a database of a kind, built."""
    if kind == "demo":
        return request.getfixturevalue("served")
    path = tmp_path / "fleet.duckdb"
    path.write_bytes(empty_database.read_bytes())
    if kind == "empty":
        return path
    with contextlib.closing(LocalStore(path)) as store:
        if kind.startswith(WITHOUT):
            for step in RECIPE:
                if step.path.name != kind.removeprefix(WITHOUT):
                    ingest(store, step.source, [step.path], step.options)
        elif kind == "telemetry":
            ingest(store, "nvml", [SAMPLE / "nvml.jsonl.gz"], ReadOptions(cluster="lab"))
        else:
            load_hostile(store, [*SHORT, "x" * 10_000])
        store.build()
    return path


@pytest.fixture
def links(database):
    """Give links to one run, node and so on, read before another process has the database."""
    return list(_of_one(database))


@pytest.fixture
def url(kind, database, links, request):  # noqa: ARG001 -- the links come first
    """Give the server of a database; the demo has one already."""
    if kind == "demo":
        yield request.getfixturevalue("base_url")
        return
    is_alone = kind == WITHOUT_NETWORK and why_not() is None
    with serving_alone(database) if is_alone else serving(database) as found:
        yield found


@pytest.mark.parametrize(
    "kind", [*KINDS, *(pytest.param(kind, marks=pytest.mark.slow) for kind in LESS)]
)
def test_every_page_is_drawn_without_an_error_and_is_light(kind, links, url, window):
    page, seen = window
    seen.errors.clear()  # of the window whose server went away
    seen.asked.clear()
    page.goto(url)
    _drawn(page, seen, "Overview", kind)
    for title in OF_THE_MENU[-3:] if kind == "empty" else OF_THE_MENU:  # which shows one page
        page.get_by_test_id("stSidebar").get_by_role("link", name=title, exact=True).click()
        _drawn(page, seen, title, kind)
    for number, (path, text) in enumerate(links):
        name = path.partition("?")[0]  # where it is open already, or there is none, none is opened
        is_loaded = number == 0 or name == "nosuch" or name in page.url
        page.goto(f"{url}/{path}") if is_loaded else page.evaluate(OPEN, f"/{path}")
        _drawn(page, seen, None, kind)
        if kind == "demo":  # else the names are hostile, or what they name has no evidence
            expect(page.get_by_text(text).locator("visible=true").first).to_be_visible()
    for path in OUTSIDE_THE_MENU if kind == "demo" else ():
        page.evaluate(OPEN, f"/{path}")
        _drawn(page, seen, None, kind)
    charts_drawn(page)
    assert seen.violations == {}
    assert seen.errors == []
    assert seen.asked == {urlsplit(url).netloc}
    page.goto("about:blank")  # the server of the next kind may have another address
    if kind == WITHOUT_NETWORK and (reason := why_not()) is not None:
        pytest.skip(f"all is well, but the server had a network: {reason}")


def _of_one(database):
    """Yield links to one thing of each kind that a database has, and a text of its page."""
    with contextlib.closing(open_store(database)) as store:
        for page, query in LINKS.items():
            found = store.read(f"{query} limit 1")
            if not found.is_empty():
                yield f"{page}={quote(found.item(0, 0))}", found.item(0, 1)


def _drawn(page, seen, title, kind):
    """Hold a page to being drawn whole, and begin to count for the next one."""
    heading = FIRST_RUN if kind == "empty" else title
    if title not in (None, "Overview"):
        page.wait_for_url(re.compile(f"/{str(title).lower()}"))
    if heading is not None:
        expect(page.get_by_role("heading", name=heading, exact=True).first).to_be_visible()
    settled(page)
    assert page.get_by_text("This panel could not be drawn").count() == 0, page.url
    if kind == "demo" and title is not None:  # tables are whole at 1,400 px
        page.wait_for_function(NONE_CUT)  # columns get their widths after the table is drawn
    assert seen.bytes_ < PAYLOAD_MAX_BYTES, (page.url, seen.bytes_)
    assert seen.errors == [], page.url
    if kind == "demo":
        assert not (found := UNREADABLE.findall(page.inner_text(".stApp"))), (page.url, found)
        # first the one in which the page before was left: a change draws all charts again
        for scheme in sorted(("light", "dark"), key=seen.scheme.__ne__):
            _show(page, scheme)
            seen.violations |= _violations(page, scheme, WCAG if scheme == "light" else OF_COLOURS)
        seen.scheme = scheme
    seen.bytes_ = 0


def _show(page, scheme):
    page.emulate_media(color_scheme=scheme)
    page.wait_for_function(IS_DARK, arg=scheme == "dark")


def _violations(page, scheme, rules):
    """Return the elements of a page that axe-core finds to break a rule, by page and rule."""
    settled(page)
    charts_drawn(page)
    options = {"runOnly": rules, "resultTypes": ["violations"]}
    if not page.evaluate("'axe' in window"):  # once in each client that is loaded
        page.evaluate(AXE_SCRIPT)
    broken = page.evaluate("options => axe.run(options).then(all => all.violations)", options)
    return {(page.url, scheme, rule["id"]): [n["html"] for n in rule["nodes"]] for rule in broken}


PORT = "8501"  # of the namespace, where nothing else listens
INSIDE = (f"ip link set lo up && {{ socat UNIX-LISTEN:$0,fork TCP:127.0.0.1:{PORT} & "
          f'exec "$@" --port {PORT}; }}')  # fmt: skip


@cache
def why_not():
    """Return why this machine cannot do it, None where it can."""
    if missing := [name for name in ("unshare", "ip", "socat") if shutil.which(name) is None]:
        return f"no {', '.join(missing)} on this machine"
    tried = subprocess.run(
        ["unshare", "-rn", "ip", "link", "set", "lo", "up"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return None if tried.returncode == 0 else f"unshare: {tried.stderr.strip()}"


@contextlib.contextmanager
def serving_alone(database):
    """Serve a database without any network; give the URL of the relay."""
    port = free_port()
    goodput = str(Path(sys.executable).with_name("goodput"))
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        path = f"{folder}/relay"
        server = stack.enter_context(
            subprocess.Popen(["unshare", "-rn", "sh", "-c", INSIDE, path, goodput, "serve", "--db",
                              database], stdout=subprocess.PIPE, text=True, start_new_session=True),
        )  # fmt: skip
        stack.callback(os.killpg, server.pid, signal.SIGKILL)
        assert server.stdout.readline().strip().endswith(f":{PORT}")
        listen = f"TCP-LISTEN:{port},bind=127.0.0.1,fork,reuseaddr"
        relay = stack.enter_context(subprocess.Popen(["socat", listen, f"UNIX-CONNECT:{path}"]))
        stack.callback(relay.kill)
        until(lambda: _listens(port), f"something listens on port {port}")
        yield f"http://127.0.0.1:{port}"


def _listens(port):
    with contextlib.suppress(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port)).close()
        return True
    return False
