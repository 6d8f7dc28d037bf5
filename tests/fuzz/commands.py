"""What the programs that kill commands share: their options, commands that run and that are cut."""

import argparse
import contextlib
import random
import subprocess
import sys
import time

from tests.app.served import GOODPUT

PATIENCE_S = 300.0
STARTS = 0.3  # of a command's time, in which it only imports: hardly worth a kill


def options(arguments, name, about, *, kills):
    """Return how many commands to kill, and what decides when."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0], prog=name)
    parser.add_argument("--kills", type=int, default=kills)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    return given.kills, random.Random(given.seed)  # noqa: S311 -- moments to kill at, no secrets


def report(problems, fine):
    """Print the problems, or a sentence where there is none; return the exit code."""
    sys.stdout.write("".join(f"{problem}\n" for problem in problems) or f"{fine}\n")
    return int(bool(problems))


class Commands:
    """Commands in a folder, and how long the slowest of each kind took."""

    def __init__(self, folder, took_s=None):
        self.folder = folder
        self.took_s = {} if took_s is None else took_s

    def start(self, command):
        """Start a command."""
        return subprocess.Popen(
            [*GOODPUT, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            cwd=self.folder,
        )  # fmt: skip

    def run(self, command):
        """Run a command undisturbed; raises RuntimeError where it fails."""
        began = time.monotonic()
        with self.start(command) as process:
            _, errors = process.communicate(timeout=PATIENCE_S)
        if process.returncode:
            raise RuntimeError(f"{' '.join(command)}: {errors}")
        self.took_s[command[0]] = max(self.took_s.get(command[0], 0.0), time.monotonic() - began)

    def is_cut(self, process, command, chance):
        """Wait for a moment at which a started command is likely at work; return whether it is."""
        began, took_s = time.monotonic(), self.took_s.get(command[0], 2.0)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(chance.uniform(STARTS * took_s, took_s))
            self.took_s[command[0]] = time.monotonic() - began  # the machine is faster now
        return process.poll() is None
