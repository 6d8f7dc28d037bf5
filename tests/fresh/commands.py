"""Runs commands as a newcomer does, and servers until they answer."""

import contextlib
import json
import os
import re
import signal
import subprocess
import threading
import urllib.request

from tests.fresh.steps import StepFailedError

URL = re.compile(r"http://[\w.:-]+")
TAIL_CHARS = 2_000  # of what a failed command printed
COMPLAINTS = ("Traceback (most recent call last)", "nanobind: leaked")  # whatever the exit code


def run(command, *, cwd, env, timeout_s=600, exit_codes=(0,)):
    """Run a command and return what it printed; raises StepFailedError for another exit code."""
    try:
        done = subprocess.run(
            list(map(str, command)), cwd=cwd, env=dict(env), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout_s,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise StepFailedError(f"{_shown(command)}: no end within {timeout_s} s") from error
    if done.returncode not in exit_codes or any(text in done.stdout for text in COMPLAINTS):
        raise StepFailedError(
            f"{_shown(command)}: exit code {done.returncode}:\n{done.stdout[-TAIL_CHARS:]}"
        )
    return done.stdout


@contextlib.contextmanager
def serving(command, *, cwd, env, timeout_s):
    """Start a command that serves and yield the URL that it prints, once `/healthz` answers.

    All of its processes are ended afterwards.
    """
    with subprocess.Popen(
        list(map(str, command)), cwd=cwd, env=dict(env), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    ) as server:  # fmt: skip
        stopped = threading.Timer(timeout_s, _end, [server])
        stopped.start()
        printed = []
        try:
            assert server.stdout is not None
            for line in server.stdout:
                printed.append(line)
                if found := URL.search(line):
                    break
            else:
                raise StepFailedError(
                    f"{_shown(command)}: no URL within {timeout_s} s:\n"
                    f"{''.join(printed)[-TAIL_CHARS:]}"
                )
            stopped.cancel()
            url = found[0].rstrip("/")
            if (health := json.loads(get(f"{url}/healthz")))["status"] != "ok":
                raise StepFailedError(f"{url}/healthz: {health}")
            yield url
        finally:
            stopped.cancel()
            _end(server)


def get(url):
    """Return what a URL answers; raises StepFailedError where it does not."""
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:  # noqa: S310 -- our own server
            return str(answer.read().decode())
    except OSError as error:
        raise StepFailedError(f"{url}: {error}") from error


def _end(server):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(server.pid, signal.SIGTERM)


def _shown(command):
    return " ".join(str(part) for part in command)
