"""Kill servers that notify or replay, at any moment; nothing is sent twice, lost or left behind.

    python -m tests.fuzz.kills_of_servers --kills 8 --seed 1

Killed (SIGKILL) are `goodput serve` with a webhook, and `goodput replay` of files and of a
database. Each finding gets to the webhook, opened and resolved under one identity each, a message
twice only where a kill came before it was marked. A recording stays as it is, and the next replay
removes what killed ones left. Takes some seconds a kill.
"""

import contextlib
import json
import signal
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from tests.app.receivers import web
from tests.app.served import PATIENCE_S, running
from tests.fuzz.commands import STARTS, options, report
from tests.fuzz.kills import SAMPLE
from tests.until import until

from goodput_ingest.live import status as live_status
from goodput_ingest.live.status import Status
from goodput_queries.database import LocalStore
from goodput_synthetic.demo import demo_database, recipe

ANSWER_BYTE_S = 0.005  # an answer takes a tenth of a second, in which a message is taken, unmarked
INTERVAL_S = 86_400.0  # of sources that fail: none is stale before the end


def main(arguments=None):
    """Kill, finish, compare; return 1 where something is lost, doubled or left."""
    kills, chance = options(arguments, "tests.fuzz.kills_of_servers", __doc__, kills=8)
    problems = []
    with tempfile.TemporaryDirectory(prefix="goodput-kills-") as folder, web() as hook:
        hook.pause_s = ANSWER_BYTE_S
        for kind, site in (("notifier", _Notifier(folder, hook)), ("replay", _Replay(folder))):
            for _ in range(kills // 2):
                site.kill(chance)
                problems += [f"after a killed {kind}: {one}" for one in site.problems()]
            site.finish()
            problems += [f"after the last {kind}: {one}" for one in site.problems()]
            sys.stdout.write(f"{site.kills} killed: {kind}\n")
    return report(problems, "nothing lost or doubled")


class _Notifier:
    """A database whose findings are sources that fail, a new one before each kill."""

    def __init__(self, folder, hook):
        self.folder, self._hook = Path(folder, "notifier"), hook
        self.folder.mkdir()
        self.database = self.folder / "fleet.duckdb"
        (self.folder / "goodput.toml").write_text(
            f'[[notify]]\nto = "webhook"\nurl = "{hook.url}"\nwait_s = 0\n'
        )
        self.kills = self._seen = 0
        self._took_s = 4.0  # from a start to the first message
        self._origins, self._marked = [], set()
        with contextlib.closing(LocalStore(self.database)) as store:
            store.build()

    def kill(self, chance):
        """Let a source fail, and those whose failure was sent answer again; kill a server."""
        self._write(f"source {len(self._origins)}", mended=self._subjects("open"))
        before, began = len(self._hook.posts), time.monotonic()
        with self._server() as process:
            if chance.random() < 0.5:
                until(lambda: len(self._hook.posts) > before, "a message is sent", within_s=60)
                self._took_s = time.monotonic() - began
                time.sleep(chance.uniform(0, 40 * ANSWER_BYTE_S))
            else:
                time.sleep(chance.uniform(STARTS * self._took_s, self._took_s))
            process.kill()
            process.wait()
        self.kills += 1

    def finish(self):
        """Send what is left, undisturbed, then that all sources answer."""
        for event in ("open", "resolved"):
            with self._server() as process:
                process.stdout.readline()
                until(lambda event=event: self._subjects(event) >= {*self._origins},
                      f"all is {event}")  # fmt: skip
                time.sleep(40 * ANSWER_BYTE_S)  # the last is marked
                process.send_signal(signal.SIGTERM)
                assert process.wait(PATIENCE_S) == 0, process.stderr.read()
            self._write(mended=self._origins)

    def problems(self):
        """Return what is wrong with the messages of the last server, and note which it marked."""
        new = [self._identity(headers) for headers, _ in self._hook.posts[self._seen :]]
        self._seen = len(self._hook.posts)
        with contextlib.closing(LocalStore(self.database)) as store:
            rows = store.read("select notification_id, sent_at from state.notifications")
            marked = {one for one, sent_at in rows.iter_rows() if sent_at is not None}
        found = [f"{one} was sent twice by one server" for one in new if new.count(one) > 1]
        found += [f"{one} was marked, and sent again" for one in new if one in self._marked]
        found += [f"{one} was marked, and not sent" for one in marked if not self._bodies(one)]
        found += [f"{one} differs when sent again" for one in new if len(self._bodies(one)) > 1]
        for event in ("open", "resolved"):
            ids = [(self._identity(headers), name) for headers, body in self._hook.posts
                   for name in _subjects(body, event)]  # fmt: skip
            names = [name for _, name in set(ids)]
            found += [f"{one} is {event} in two messages" for one in names if names.count(one) > 1]
        self._marked = marked
        return found

    def _server(self):
        return running("serve", "--db", str(self.database), "--port", "0", cwd=self.folder)

    def _write(self, *failing, mended):
        now = datetime.now(UTC).replace(tzinfo=None)
        self._origins += failing
        sources = [Status("slurm", one, now, INTERVAL_S) for one in (*failing, *mended)]
        with contextlib.closing(LocalStore(self.database)) as store:
            live_status.write(store, [
                one.answered(now) if one.origin in mended else one.failed(now, "it is away")
                for one in sources
            ])  # fmt: skip

    def _subjects(self, event):
        return {name for _, body in self._hook.posts for name in _subjects(body, event)}

    def _bodies(self, identity):
        return {body for head, body in self._hook.posts if self._identity(head) == identity}

    @staticmethod
    def _identity(headers):
        return headers["idempotency-key"]


def _subjects(body, event):
    """Return the sources that a message is about, where it is of that event."""
    said = json.loads(body)
    is_it = said["event"] == f"finding.{event}"
    return [one["subject"].removeprefix("slurm ") for one in said["findings"]] if is_it else []


class _Replay:
    """A recorded session, as files and as a database, and a folder for temporary files."""

    def __init__(self, folder):
        self.folder, self._temporary = Path(folder, "replay"), Path(folder, "temporary")
        self._temporary.mkdir()
        self.database = demo_database(self.folder, sample_data=SAMPLE)
        self._content = self.database.read_bytes()
        files = [str(step.path) for step in recipe(SAMPLE)]
        self._recordings = [str(self.database)], [*files, "--cluster", "lab"]
        self.kills, self._took_s, self._most = 0, 12.0, 1

    def kill(self, chance):
        """Kill a replay of the files or the database."""
        with self._server(chance.choice(self._recordings)) as process:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(chance.uniform(STARTS * self._took_s, self._took_s))
                raise RuntimeError(process.stderr.read())
            process.kill()
            process.wait()
        self.kills += 1

    def finish(self):
        """Replay undisturbed, which removes what the killed ones left, and end it."""
        for recording in self._recordings:
            with self._server(recording) as process:
                assert process.stdout.readline().startswith("http"), process.stderr.read()
                assert len(self._left()) == 1
                process.send_signal(signal.SIGTERM)
                assert process.wait(PATIENCE_S) == 0, process.stderr.read()
        self._most = 0

    def problems(self):
        """Return what is left over or changed."""
        found = []
        if len(self._left()) > self._most:
            found.append(f"temporary folders are left: {self._left()}")
        if [path.name for path in self.folder.glob("*.duckdb*")] != [self.database.name]:
            found.append("there are files beside the recording")
        if self.database.read_bytes() != self._content:
            found.append("the recording is another one")
        return found

    def _left(self):
        return sorted(path.name for path in self._temporary.iterdir())

    def _server(self, recording):
        command = ["replay", *recording, "--port", "0", "--speed", "100"]
        return running(*command, cwd=self.folder, TMPDIR=str(self._temporary))


if __name__ == "__main__":
    raise SystemExit(main())
