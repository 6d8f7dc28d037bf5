"""Every page and every download for every role: offered or not, and whose rows are in it.

Pages and files are those of the program itself: one without a row in the tables below fails.
"""

import json
import re
from fnmatch import fnmatch
from types import SimpleNamespace

import pytest
from tests.app.conftest import at_path
from tests.app.opened_page import Offered, assert_sound, elements, file_text, sent, texts, texts_of
from tests.hostile_names import ALL_IN_ONE, LONG
from tests.two_teams import COBALTS, RED

from goodput_app.access import current
from goodput_app.access.identity import Action, Identity, Role
from goodput_app.dashboard.components.states import WITHHELD
from goodput_app.dashboard.data import findings
from goodput_app.process.store import use_store
from goodput_queries import audit
from goodput_queries.database import LocalStore
from goodput_queries.scope import Scope

OTHERS = (COBALTS.word, "evil")
OF_A_TEAM = Identity("reader", frozenset({Role.ADMIN}), frozenset({RED}))  # offered most
WINDOW = {"from": "2027-01-15T08:00:00Z", "to": "2027-01-15T10:00:00Z"}
PAGE_MAX_BYTES = 1_000_000

# page: the actions that it asks about; whether rows of places are withheld from a team
PAGES = {
    "": ({Action.SET_FINDING_STATE}, False),
    "fleet": (set(), True),
    "runs": (set(), False),
    "run": (set(), False),
    "nodes": ({Action.SET_FINDING_STATE}, True),
    "health": (set(), True),
    "gpu": (set(), True),
    "findings": ({Action.SET_FINDING_STATE}, False),
    "waste": (set(), True),
    "network": (set(), True),
    "serving": (set(), False),
    "compare": ({Action.NOTE_RUN}, False),
    "cost": ({Action.DOWNLOAD_STATEMENT, Action.WRITE_NOTE, Action.GIVE_CREDIT}, True),
    "cost?part=prices": ({Action.EDIT_PRICES}, True),
    "cost?part=what-if": (set(), True),
    "report": (set(), False),
    "energy": (set(), True),
    "data": ({Action.READ_AUDIT_LOG, Action.REPLAY_RECORDING, Action.TEST_NOTIFICATION}, True),
    "explorer": (set(), True),
    "query": (set(), False),
    "help": (set(), False),
}
OF_THE_TEAM = {"run": {"run": "c/redrun"}, "nodes": {"node": "sharednode"},
               "gpu": {"gpu": "c/sharednode#0"},
               "compare": {"a": "c/redrun", "b": "c/common"}}  # fmt: skip
OF_ALL_NAMES = {"run": {"run": f"c/{ALL_IN_ONE}"}, "nodes": {"node": ALL_IN_ONE},
                "gpu": {"gpu": f"GPU-{ALL_IN_ONE}"},
                "compare": {"a": f"c/{ALL_IN_ONE}", "b": "c/redrun"}}  # fmt: skip
CONFIG = """\
[ui]
edit_prices = true

[[notify]]
to = "webhook"
url_env = "GOODPUT_TEST_NOT_SET"
"""
FINANCE = {Role.FINANCE, Role.ADMIN}
DOWNLOADS = {  # who is offered a file, where all who see the page are not
    "goodput-*.parquet": set(Role),
    "goodput-compare.*": set(Role),
    "goodput-query.[!p]*": set(Role),
    "cost-by-*": set(Role),
    "statement-*": FINANCE,
    "focus-*": FINANCE,
}


@pytest.fixture(scope="module")
def store(teams):
    audit.record(teams, f"{COBALTS.word}user", "sign in")
    use_store(teams)
    a_finding()  # what no test of a page pays for
    return teams


class Site:
    """The dashboard of a store, as one person after the other sees it."""

    def __init__(self, store, monkeypatch):
        self._monkeypatch = monkeypatch
        self.offered, self.asked = Offered(monkeypatch), set[Action]()
        self._script = None
        monkeypatch.setattr(current, "_script", lambda: self._script)
        may = Identity.may

        def noted(identity, action):
            self.asked.add(action)
            return may(identity, action)

        monkeypatch.setattr(Identity, "may", noted)
        use_store(store)

    def page(self, who, page):
        """Draw a page of what has all hostile names, or of the team, and hold it to being sound."""
        self.offered.files.clear()
        self.asked.clear()
        path, _, part = page.partition("?part=")
        of = OF_ALL_NAMES if who.teams is None else OF_THE_TEAM
        self._script = SimpleNamespace(user_info={current.USER_KEY: current.packed(who)})
        params = {**WINDOW, **of.get(path, {}), **({"part": part} if part else {})}
        if path == "findings":
            params["finding"] = a_finding()
        app = at_path(path, **params)
        if path == "query" and who.teams is not None:
            app.text_area("query_sql").set_value("select * from marts.run_notes")
            app.button("query_run").click().run()
        return assert_sound(app)

    def files(self):
        """Return the texts of the files of the last page, fetched as a browser does."""
        self._script = None
        read, kept = LocalStore.read, {}

        def read_once(store, *of, **more):
            """Answer what several forms of one statement ask once: nothing changes in between."""
            if (key := repr((of, more))) not in kept:
                kept[key] = read(store, *of, **more)
            return kept[key]

        with self._monkeypatch.context() as patched:
            patched.setattr(LocalStore, "read", read_once)
            return {name: file_text(name, made()) for name, made in self.offered.files.items()}


@pytest.fixture
def site(
    store,
    configured,
    monkeypatch,
    visit,  # noqa: ARG001 -- it keeps answers over the tests of the module
    people_sign_in,  # noqa: ARG001 -- as they do
):
    configured(CONFIG)
    return Site(store, monkeypatch)


def a_finding():
    """Return the key of a finding that the page shows; its evaluation is kept for the page."""
    found = findings.known(Scope(from_ms=1_800_000_000_000, to_ms=1_800_007_200_000))
    return str(found.findings["finding_key"][0])


ROLES = {
    "viewer": Identity("vi"),
    "operator": Identity("op", frozenset({Role.OPERATOR})),
    "finance": Identity("fi", frozenset({Role.FINANCE})),
    "admin": Identity("ad", frozenset({Role.ADMIN})),
}
OFFERED = {
    Action.SET_FINDING_STATE: lambda app, _: has_button(app, "Acknowledge"),
    Action.NOTE_RUN: lambda app, _: has_button(app, "Add note"),
    Action.EDIT_PRICES: lambda app, _: has_button(app, "Imported"),
    Action.DOWNLOAD_STATEMENT: lambda _, site: FINANCE in map(roles_of, site.offered.files),
    Action.REPLAY_RECORDING: lambda app, _: "Replay" in subheaders(app),
    Action.TEST_NOTIFICATION: lambda app, _: has_button(app, "Send a test message"),
    Action.WRITE_NOTE: lambda app, _: has_button(app, "Write"),
    Action.GIVE_CREDIT: lambda app, _: "Amount of a credit" in [t.label for t in app.text_input],
    Action.READ_AUDIT_LOG: lambda app, _: "Audit log" in subheaders(app),
}

HINTS = {  # what a page says to who may not
    Action.EDIT_PRICES: "Finance edits prices here",
    Action.DOWNLOAD_STATEMENT: "Finance downloads statements",
    Action.TEST_NOTIFICATION: "Operators send test messages",
}
OTHER_RUNS = "Runs of other teams are not shown."


def has_button(app, label):
    return any(button.label == label for button in app.button)


def subheaders(app):
    return [title.value for title in app.subheader]


def offers(app, site, who, page):
    """Return what is wrong with what a page offers a person."""
    wrong = [
        f"{action}: {'' if is_offered(app, site) else 'not '}offered"
        for action, is_offered in OFFERED.items()
        if is_offered(app, site) != (action in PAGES[page][0] and who.may(action))
    ]
    return wrong + [name for name in site.offered.files if not who.roles & roles_of(name)]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_asks_for_its_actions_and_renders_no_name_as_markup(site, page):
    """A page that asks for no action is the same for every role."""
    app = site.page(ROLES["admin"], page)

    assert {str(info["url_pathname"]) for info in app._registered_pages.values()} == {
        page.partition("?")[0] for page in PAGES
    }
    assert site.asked == PAGES[page][0]
    assert {name for name in site.offered.files if not kinds(name)} == set()
    assert offers(app, site, ROLES["admin"], page) == []
    if page != "help":  # the documentation is markup of our own, and has no name of a site
        assert [found for message in elements(app) for found in markup(message)] == []
    assert all(message.ByteSize() < PAGE_MAX_BYTES for message in elements(app))


def roles_that_differ():
    """Yield pages with the roles to which they differ: one of each set of allowed actions.

    An admin is drawn above, the admin of a team below.
    """
    for page, (actions, _) in PAGES.items():
        drawn = {frozenset(actions)}
        for role, who in ROLES.items():
            allowed = frozenset(filter(who.may, actions))
            if allowed not in drawn:
                drawn.add(allowed)
                yield page, role


@pytest.mark.parametrize(("page", "role"), list(roles_that_differ()))
def test_a_role_is_offered_what_it_may_do(site, page, role):
    who = ROLES[role]
    app = site.page(who, page)

    assert {*OFFERED, Action.RETIRE_SOURCE} == set(Action), "sources are retired by a command"
    assert offers(app, site, who, page) == []
    assert [text.value for text in app.sidebar.text] == [who.name]
    for action, hint in HINTS.items():
        assert (hint in texts(app)) == (action in PAGES[page][0] and not who.may(action)), hint


@pytest.mark.parametrize("page", PAGES)
def test_nothing_of_another_team_is_in_a_page_or_its_files(site, page):
    """Who may do everything is offered most, and sees the rows of their team alone."""
    app = site.page(OF_A_TEAM, page)

    shown = sent(app).replace("Libreville", "(a time zone)") + str(site.files())
    assert [name for name in OTHERS if name in shown] == []
    assert LONG[:100] not in shown
    assert (WITHHELD in [info.value for info in app.info]) == PAGES[page][1]
    assert PAGES[page][1] or "red" in shown
    assert (OTHER_RUNS in texts(app)) == (page in ("", "runs")), OTHER_RUNS
    assert PAGES[page][1] or offers(app, site, OF_A_TEAM, page) == []


def roles_of(file):
    """Return who is offered a file."""
    (pattern,) = kinds(file)
    return DOWNLOADS[pattern]


def kinds(file):
    """Return the patterns of a file."""
    return [pattern for pattern in DOWNLOADS if fnmatch(file, pattern)]


PLAIN = {  # shown by the browser as they are
    *("Code.code_text", "Selectbox.options", "Selectbox.raw_value", "Selectbox.set_value"),
    *("PageLink.query_string",),
}
MARKDOWN = re.compile(
    r"(?<!\\)(<img|<b>evil</b>|</?script|```|\$\$e|\$\\|\*\*evil|`evil|:(red\[|material/skull|streamlit|smile))"
    r"|\]\(|https?://evil|www\.evil|eve@evil|(^|\s)-> evil|[\u202e\u2066\u200f\x1b\x9b\0]"
)
OF_A_CHART = re.compile(
    r"<(img|b>evil</b>|/?script)|https?://evil[^<]*</a>|(?<!\S)\$.*\$|%\{y\} "
    r"|[\u202e\u2066\u200f\x1b\x9b\0]"
)


def markup(message):
    """Yield the texts of an element in which a browser would render a hostile name."""
    for field, text in texts_of(message):
        if field == "PlotlyChart.spec":
            ids = set[str]()
            for name, axis in json.loads(text)["layout"].items():
                ids |= set(map(str, axis.get("tickvals", []))) if "axis" in name else set()
            found = set(shown(json.loads(text))) - ids  # an axis shows the texts of its ticks
            yield from ((field, one) for one in found if OF_A_CHART.search(one))
        elif field not in PLAIN and MARKDOWN.search(text):
            yield field, text[:500]


def shown(chart):
    """Yield the texts that a chart shows: what is only handed back after a click is not."""
    if isinstance(chart, dict):
        hover = str(chart.get("hovertemplate", ""))
        for row in chart.get("customdata", []) if "customdata" in hover else []:
            named = re.findall(r"customdata\[(\d+)\]", hover)
            yield from shown([row[int(at)] for at in named] if named else row)
        for name, value in chart.items():
            if name not in ("customdata", "hovertemplate", "ids"):
                yield from shown(value)
    elif isinstance(chart, list):
        for value in chart:
            yield from shown(value)
    elif isinstance(chart, str):
        yield chart
