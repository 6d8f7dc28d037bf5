"""The training loss that a log line prints, whatever framework wrote the line.

`lm loss: 7.1E+00 |`, `loss:  6.41230`, `'loss': '1.932'`, `train_loss=1.93`,
`loss = nan`, `loss 2.31`, `Loss: 6.95 (6.94)`, `loss 2,31` where a comma is the decimal point
"""

import re

LOSS = re.compile(
    r"loss(?:['\"]?\s*[:=]\s*['\"]?|\s+)"
    r"(?P<loss>[+-]?(?:nan|inf(?:inity)?|\d{1,30}(?:\.\d{0,30}|,\d{1,30})?(?:e[+-]?\d{1,3})?))"
    r"(?![\w.]|,\d)",
)
NAMES = ("lm ", "train_", "training_")  # before "loss"; another word makes it another loss


def loss_of(text: str) -> float | None:
    """Return the loss on a line, which may be NaN or infinite; None where there is none."""
    text = text.lower()
    at = text.find("loss")
    while at >= 0:
        if text[:at].endswith(NAMES) or not (
            at and (text[at - 1].isalnum() or text[at - 1] in "_-")
        ):
            found = LOSS.match(text, at)
            if found is not None:
                return float(found["loss"].replace(",", "."))
        at = text.find("loss", at + 4)
    return None
