"""The training loss that a log line prints, whatever framework wrote the line.

`lm loss: 7.1E+00 |`, `loss:  6.41230`, `'loss': '1.932'`, `train_loss=1.93`, `avr_loss=nan`,
`loss = nan`, `loss 2.31`, `Loss: 6.95 (6.94)`, `loss 2,31` where a comma is the decimal point
"""

import re
from collections.abc import Iterable
from dataclasses import replace

from goodput_ingest.sources.job_logs.events import Event

LOSS = re.compile(
    r"loss(?:['\"]?\s*[:=]\s*['\"]?|\s+)"
    r"(?P<loss>[+-]?(?:nan|inf(?:inity)?|\d{1,30}(?:\.\d{0,30}|,\d{1,30})?(?:e[+-]?\d{1,3})?))"
    r"(?!\w|[.,]\d)",
)
# before "loss", and what such a word may end with; another one makes it another loss
NAMES = {"", "lm_", "avr_", "avg_", "per_token_"}
ENDS = ("train_", "training_")
WORD_CHARS = "abcdefghijklmnopqrstuvwxyz0123456789_-"


def loss_of(text: str) -> float | None:
    """Return the loss on a line, which may be NaN or infinite; None where there is none."""
    text = text.lower()
    at = text.find("loss")
    while at >= 0:
        found = LOSS.match(text, at)
        if found is not None and _is_of_training(text[:at]):
            return float(found["loss"].replace(",", "."))
        at = text.find("loss", at + 4)
    return None


def with_loss(events: Iterable[Event], text: str) -> Iterable[Event]:
    """Return the events of a line; the loss that it prints is of the last step among them."""
    if (loss := loss_of(text)) is None:
        return events
    found = list(events)
    for position in reversed(range(len(found))):
        if found[position].event == "step":
            if found[position].loss is None:
                found[position] = replace(found[position], loss=loss)
            break
    return found


def _is_of_training(before: str) -> bool:
    name = before[len(before.rstrip(WORD_CHARS)) :]
    return name in NAMES or name.endswith(ENDS)
