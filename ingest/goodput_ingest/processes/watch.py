"""Watches a process that runs already: its start, that it lives, when it ends."""

import time

from goodput_ingest.processes import proc
from goodput_ingest.processes.proc import Process
from goodput_ingest.processes.record import Record

LOOK_S = 0.2


def watch(watched: Process, record: Record) -> None:
    """Record a process until it ends; how it ended only its parent learns."""
    record.pid = watched.pid
    record.start(watched.start_s, watched.command, watched.user)
    while proc.start_ticks(watched.pid) == watched.ticks:
        record.alive(process="lives")
        time.sleep(LOOK_S)
    record.event("metric", time.time(), process="ended")
