"""The training loss that a log line prints, whatever framework wrote the line.

`lm loss: 7.1E+00 |`, `loss:  6.41230`, `'loss': '1.932'`, `train_loss=1.93`, `loss = nan`
"""

from __future__ import annotations

import math
import re

LOSS = re.compile(
    r"(?<![\w-])(?:lm |train_|training_|reduced_train_)?loss['\"]?\s*[:=]\s*['\"]?"
    r"(?P<loss>[+-]?(?:nan|inf(?:inity)?|\d{1,30}(?:\.\d{0,30})?(?:e[+-]?\d{1,3})?))(?![\w.])",
    re.IGNORECASE,
)


def loss_of(text: str) -> float | None:
    """Return the loss on a line, which may be NaN or infinite; None where there is none."""
    if "loss" not in text or (found := LOSS.search(text)) is None:
        return None
    loss = float(found["loss"])
    return math.nan if math.isnan(loss) else loss
