"""Watches a process that runs already: its start, that it lives, when it ends."""

import os
import select
import time

from goodput_ingest.processes import proc
from goodput_ingest.processes.proc import Process
from goodput_ingest.processes.record import ALIVE_S, Record


def watch(watched: Process, record: Record) -> None:
    """Record a process until it ends. How it ended only its parent learns: the outcome is unknown.

    Raises ProcessLookupError where it has ended already.
    """
    record.pid = watched.pid
    ending = os.pidfd_open(watched.pid)
    try:
        if proc.start_ticks(watched.pid) != watched.ticks:
            raise ProcessLookupError
        record.start(watched.start_s, watched.command, watched.user)
        while not select.select([ending], [], [], ALIVE_S)[0]:
            record.alive(process="lives")
        record.event("metric", time.time(), process="ended")
    finally:
        os.close(ending)
