"""Steps with what was seen and how long each took; the first that fails ends the run."""

import contextlib
import os
import time
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait


class StepFailedError(Exception):
    """A step did not do what a newcomer expects of it; the message says what came instead."""


class Steps:
    """Prints a line a step: seconds, name, what was seen."""

    def __init__(self):
        self.are_passed = 0
        self._have_failed = False

    @contextlib.contextmanager
    def step(self, name):
        """Time a step; what it appends to the list is what was seen."""
        if self._have_failed:
            raise StepFailedError(f"{name}: not begun after another step failed")
        seen = []
        start_s = time.monotonic()
        yield seen
        spent_s = time.monotonic() - start_s
        print(f"{spent_s:6.1f} s  {name}: {'; '.join(seen) or 'done'}", flush=True)  # noqa: T201
        self.are_passed += 1

    def side_by_side(self, *several):
        """Do several rows of steps at the same time; raises what the first that fails raises."""
        with ThreadPoolExecutor(len(several)) as pool:
            rows = [pool.submit(row) for row in several]
            ended, _ = wait(rows, return_when=FIRST_EXCEPTION)
            failed = [error for row in ended if (error := row.exception()) is not None]
            self._have_failed = bool(failed)
        if failed:
            raise failed[0]


def plain_environment(home):
    """Return the variables of a new user: nothing of Python's, of Goodput's or of this shell's."""
    kept = ("PATH", "LANG", "TERM", "PIP_INDEX_URL", "PIP_CONFIG_FILE", "SSL_CERT_FILE")
    passed = {name: os.environ[name] for name in kept if name in os.environ}
    active = os.environ.get("VIRTUAL_ENV")
    path = os.pathsep.join(
        part
        for part in passed.get("PATH", os.defpath).split(os.pathsep)
        if active is None or not part.startswith(active)
    )
    home.mkdir(parents=True, exist_ok=True)
    return {**passed, "PATH": path, "HOME": str(home), "PYTHONDONTWRITEBYTECODE": ""}
