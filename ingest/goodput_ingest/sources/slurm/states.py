"""Slurm's node states, long and short and with their signs, to the states of the ledger."""

import csv
import re
from importlib.resources import files

SIGNS = {
    "*": "NOT_RESPONDING",
    "~": "POWERED_DOWN",
    "#": "POWERING_UP",
    "!": "POWER_DOWN",
    "%": "POWERING_DOWN",
    "$": "MAINT",
    "@": "REBOOT_REQUESTED",
    "^": "REBOOT_ISSUED",
    "-": "PLANNED",
}
# The first row that has one of the words wins: a node in maintenance is not a failure, a node that
# does not answer is not merely drained.
_FILE = (files("goodput_ingest.sources.slurm") / "node_states.csv").read_text("utf-8")
LEDGER_STATES = tuple(
    (row["state"], set(row["words"].split())) for row in csv.DictReader(_FILE.splitlines())
)
NO_STATE = {"UNKNOWN", "UNK", "FUTURE", "FUTR"}  # no evidence; a future node does not exist yet
FLAGS = {
    *("CLOUD", "EXTERNAL", "DYNAMIC", "DYNAMIC_NORM", "DYNAMIC_FUTURE"),
    *("REBOOT_REQUESTED", "REBOOT_CANCELED", "CANCEL_REBOOT"),
}
_WORDS = {word for _, words in LEDGER_STATES for word in words} | NO_STATE | FLAGS
_WORD = re.compile(r"([A-Za-z_]+)([*~#!%$@^-]*)")


def words(text: str) -> set[str] | None:
    """Return the words of a state (`down*`, `IDLE+PLANNED`, `mix-`); None where it is no state."""
    found: set[str] = set()
    for part in text.strip().upper().split("+"):
        match = _WORD.fullmatch(part)
        if match is None or match[1] not in _WORDS:
            return None
        found |= {match[1], *(SIGNS[sign] for sign in match[2])}
    return found


def ledger_state(found: set[str]) -> str | None:
    """Return the state of the ledger, null where the scheduler has none (unknown, future)."""
    if found & {"FUTURE", "FUTR"}:
        return None
    return next((state for state, names in LEDGER_STATES if found & names), None)
