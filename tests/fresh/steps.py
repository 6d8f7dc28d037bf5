"""Steps with what was seen and how long each took; the first that fails ends the run."""

import contextlib
import os
import resource
import time


class StepFailedError(Exception):
    """A step did not do what a newcomer expects of it; the message says what came instead."""


class Steps:
    """Prints a line a step: seconds, CPU seconds of ended processes, name, what was seen."""

    def __init__(self):
        self.are_passed = 0

    @contextlib.contextmanager
    def step(self, name):
        """Time a step; what it appends to the list is what was seen."""
        seen = []
        start_s, cpu_s = time.monotonic(), _cpu_s()
        yield seen
        spent = f"{time.monotonic() - start_s:6.1f} s {_cpu_s() - cpu_s:6.1f} CPU s"
        print(f"{spent}  {name}: {'; '.join(seen) or 'done'}", flush=True)  # noqa: T201
        self.are_passed += 1


def _cpu_s():
    of_children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return of_children.ru_utime + of_children.ru_stime


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
