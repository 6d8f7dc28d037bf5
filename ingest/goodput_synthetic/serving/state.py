"""What an engine has counted and does at a moment of its life, whatever its product calls it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from goodput_synthetic.serving.load import Load

Values = npt.NDArray[np.float64]

NEVER = 2**62


@dataclass(frozen=True)
class State:
    """The state at a moment.

    numbers: counters since the life began, and gauges. observed: by kind of time, the values in
    seconds and how often each was observed.
    """

    numbers: dict[str, float]
    observed: dict[str, tuple[Values, Values]]


class Lifetime:
    """The requests of one life of an engine, as arrays."""

    def __init__(self, load: Load, life: int) -> None:
        """Take the requests that the life served or had in its queue."""
        of_life = [one for one in load.requests if one.life == life]
        self._kv_tokens = load.engine.kv_tokens

        def array(name: str) -> Any:
            found = [getattr(one, name) for one in of_life]
            return np.array([NEVER if value is None else value for value in found], np.float64)

        self.arrival, self.start = array("arrival_ms"), array("start_ms")
        self.first, self.end = array("first_token_ms"), array("end_ms")
        self.input, self.output = array("input_tokens"), array("output_tokens")
        self.cached, self.inter_ms = array("cached_tokens"), array("inter_token_ms")
        self.is_ok = np.array([one.status == "ok" for one in of_life], np.bool_)
        self.is_aborted = np.array([one.status == "aborted" for one in of_life], np.bool_)

    def at(self, ms: int) -> State:
        """Return the state at a moment, epoch milliseconds."""
        is_started, has_first = self.start <= ms, self.first <= ms
        # what the end of the life cuts off is not counted
        is_over = (self.end <= ms) & (self.is_ok | self.is_aborted)
        is_running = is_started & ~is_over & (self.end > ms)
        tokens = np.where(has_first, 1 + np.floor((ms - self.first) / self.inter_ms), 0.0)
        tokens = np.where(self.end <= ms, self.output, np.minimum(tokens, self.output))
        numbers = {
            "prompt_tokens": self.input[has_first].sum(),
            "generation_tokens": tokens.sum(),
            "prompt_tokens_finished": self.input[is_over].sum(),
            "generation_tokens_finished": self.output[is_over].sum(),
            "cached_tokens_finished": self.cached[is_over].sum(),
            "requests_ok": float((is_over & self.is_ok).sum()),
            "requests_aborted": float((is_over & self.is_aborted).sum()),
            "prefix_cache_queries": self.input[is_started].sum(),
            "prefix_cache_hits": self.cached[is_started].sum(),
            "requests_running": float(is_running.sum()),
            "requests_waiting": float(((self.arrival <= ms) & ~is_started).sum()),
            "kv_cache_ratio": min(1, (self.input + tokens)[is_running].sum() / self._kv_tokens),
        }
        once = np.ones_like(self.first)
        gaps = np.maximum(tokens - 1, 0)
        inter_s = self.inter_ms / 1000
        decode_s = (self.end - self.first) / 1000
        has_gaps = is_over & (self.output > 1)
        observed = {
            "ttft_s": ((self.first - self.arrival)[has_first] / 1000, once[has_first]),
            "inter_token_s": (inter_s[gaps > 0], gaps[gaps > 0]),
            "mean_inter_token_s": (inter_s[has_gaps], once[has_gaps]),
            "e2e_s": ((self.end - self.arrival)[is_over] / 1000, once[is_over]),
            "queue_s": ((self.start - self.arrival)[is_over] / 1000, once[is_over]),
            "prefill_s": ((self.first - self.start)[is_over] / 1000, once[is_over]),
            "decode_s": (decode_s[is_over], once[is_over]),
        }
        return State({name: float(value) for name, value in numbers.items()}, observed)
