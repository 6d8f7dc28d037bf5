"""Twenty sessions of two teams on one server: no page has rows of the other team, none fails."""

import re
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from tests.app.page_session import page_session
from tests.app.served import PATIENCE_S, serving
from tests.two_teams import COBALTS, REDS
from tests.until import until

SESSIONS = 20
MEMORY_MIB, MORE_MIB = 256, 512  # of the database, and what the process takes beyond, at most
TEAMS = (REDS, COBALTS)
SETTINGS = """
[database]
memory_mib = {}

[access]
sign_in = "proxy"
hosts = ["127.0.0.1"]
""" + "".join(
    f'[[access.members]]\ngroup = "{team.name}"\nrole = "admin"\nteams = ["{team.name}"]\n'
    for team in TEAMS
)
WINDOW = "from=2027-01-15T08:00:00Z&to=2027-01-15T10:00:00Z"
PAGES = {
    "": "", "runs": "", "run": "&run=c/{team.word}run", "findings": "", "cost": "",
    "nodes": "&node=sharednode", "report": "",
}  # fmt: skip


@pytest.fixture
def server(two_teams, tmp_path):
    (tmp_path / "goodput.toml").write_text(SETTINGS.format(MEMORY_MIB))
    shutil.copyfile(two_teams, tmp_path / "fleet.duckdb")
    with serving(tmp_path / "fleet.duckdb") as running:
        until(lambda: running.get("/healthz").json()["is_built"], "the ledger is built")
        yield running


def names_of(team, sent):
    """Return the names of a team in the messages of a page."""
    words = "team|user|train|run|node|shared|small|waits|pod|key"
    return set(re.findall(rf"(?<!sha){team.word}(?:{words})", sent))  # both have `sharednode`


@pytest.mark.slow
@pytest.mark.machine
def test_twenty_sessions_at_once_see_their_own_team_alone(server):
    at_once = Barrier(SESSIONS, timeout=PATIENCE_S)

    def session(number):
        own, other = TEAMS if number % 2 else TEAMS[::-1]
        headers = {"X-Forwarded-User": f"person {number}", "X-Forwarded-Groups": own.name}
        problems, seen = [], set()
        with page_session(server.url, **headers) as opened:
            for page, more in PAGES.items():
                at_once.wait()
                sent, errors = opened.draw(page, WINDOW + more.format(team=own))
                seen |= names_of(own, sent)
                problems += [f"{page}: {one}" for one in (*errors, *names_of(other, sent))]
        return problems, seen

    with ThreadPoolExecutor(SESSIONS) as threads:
        found = list(threads.map(session, range(SESSIONS)))

    assert [problems for problems, _ in found] == [[]] * SESSIONS
    assert {tuple(sorted(seen)) for _, seen in found[::2]} == {tuple(sorted(found[0][1]))}
    assert all(len(seen) > 3 for _, seen in found)
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    assert int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) >> 10 < MEMORY_MIB + MORE_MIB
    assert server.end(signal.SIGTERM) == 0
    assert server.process.stderr.read() == ""
