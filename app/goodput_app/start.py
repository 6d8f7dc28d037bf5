"""The command `goodput`: begins its process again where its allocator has to be told first."""

from __future__ import annotations

import contextlib
import os
import sys

from goodput_app import allocators


def main() -> None:
    """Run the command line."""
    if (told := allocators.to_begin_with()) and sys.executable:
        with contextlib.suppress(OSError):  # then it runs as it began
            again = [sys.executable, *sys.orig_argv[1:]]
            os.execve(sys.executable, again, os.environ | told)  # noqa: S606 -- itself
    from goodput_app.cli import main as run  # noqa: PLC0415 -- large, and loaded once

    run()
