"""Failure kinds of lines in a job's log: exceptions, signals, CUDA, NCCL and host-memory messages.

The rules are tried in order, so that the kind of `RuntimeError: CUDA error: ...` is the more
specific one. What each kind means is in `reference/failure_kinds.csv`, in the same order. A line
without a rule has no kind: other text is not guessed at. The texts of CUDA are those that
cudaGetErrorString returns.
"""

import re
import tomllib
from importlib.resources import files
from typing import Any, Final, NamedTuple

_FILE: Final[dict[str, Any]] = tomllib.loads(
    (files("goodput_ingest.sources.job_logs") / "failure_kinds.toml").read_text("utf-8")
)
# what wraps an exception (`ERROR: LoadError: `, `Exception: '`), and the module that defines it
_MODULE: Final = r"(?:[A-Za-z_]\w*(?:\.|::(?:\d+::)?))*"
_NAME: Final = rf"^\s*(?:[\w.]{{0,80}}(?:[Ee]rror|ERROR|Exception)(?:: ['\"]?|\())*{_MODULE}"
_SAYS: Final = r"(?:\s*:|\s*$|\s?\(|'>|\): )"  # what follows it
_WORDS: Final = {"MODULE": _MODULE, "NAME": _NAME, "SAYS": _SAYS, "MEMORY": _FILE["memory"]}
# how a line ends behind what errno says: Perl names the line of its script
_END: Final = r"(?: at \S+ line \d+| [\[(][^\])]*[\])]|: unknown|[\s.,!\"'\u2019\\)\]}])*$"
# behind what happened, of whatever kind it was: Ray lists what may have
_POSSIBLE: Final = re.compile(r"(?:potential root|common|possible) causes\b")


class Rule(NamedTuple):
    """A kind: the patterns of any of its lines, and of those that are of no low level.

    hints: substrings, one of which each of its lines holds; signal: that ended a process.
    """

    kind: str
    hints: tuple[str, ...]
    sure: re.Pattern[str]
    said: re.Pattern[str]
    signal: int | None

    def holds(self, texts: tuple[str, ...], signal: int, *, is_low: bool) -> bool:
        """Say whether a line is of this kind, by its whole text and by its message."""
        if signal == self.signal:
            return True
        for hint in self.hints:  # as a generator it takes twice the time
            if hint in texts[0]:
                patterns = (self.sure,) if is_low else (self.sure, self.said)
                return any(one.search(text) for text in texts for one in patterns)
        return False


def _pattern(patterns: list[str], flags: int = 0) -> re.Pattern[str]:
    """Return what holds where one of the patterns does."""
    every = "|".join(f"(?:{one})" for one in patterns) or "(?!)"
    for word, meant in _WORDS.items():
        every = every.replace(f"{{{word}}}", meant)
    return re.compile(every, flags)


def _rule(kind: str, found: dict[str, Any]) -> Rule:
    names, ends = ("|".join(found.get(key, ())) for key in ("exceptions", "errno"))
    before = r"(?:[:;()\]-]\s?|[,\s]\s|\berror )"
    errno = [rf"{before}(?i:{ends}){_END}", rf"^\S+: (?i:{ends}): ", rf'"(?i:{ends})"']
    sure = [*found.get("patterns", ()), *([rf"{_NAME}(?:{names}){_SAYS}"] if names else ())]
    flags = re.IGNORECASE if kind == "nan" else 0
    said = _pattern([*found.get("said", ()), *(errno if ends else ())], flags)
    return Rule(kind, tuple(found["hints"]), _pattern(sure, flags), said, found.get("signal"))


RULES: Final = tuple(_rule(kind, one) for kind, one in _FILE.items() if isinstance(one, dict))
KINDS: Final = tuple(rule.kind for rule in RULES)  # the most specific first
HINTS: Final[tuple[str, ...]] = tuple(_FILE["hints"])
_NONE, _LOW, _ENDED = (_pattern(_FILE[key]) for key in ("none", "low", "ended"))
_PREFIX: Final = re.compile(_FILE["prefix"])
TEXT_MAX_CHARS: Final = 2_000  # what a line says it says early


def kind_of(text: str, otherwise: str | None = None) -> str | None:
    """Return the failure kind of a line, free of a collector's labels; None: it is no failure.

    otherwise: the kind of a line that no rule knows
    """
    text = text[:TEXT_MAX_CHARS]
    if _NONE.search(text):
        return None
    text = _POSSIBLE.split(text, maxsplit=1)[0]
    prefix = _PREFIX.match(text)
    texts = (text, text[prefix.end() :]) if prefix is not None and prefix.end() else (text,)
    is_low = _LOW.search(text) is not None
    ended = _ENDED.search(text)
    signal = 0 if ended is None or is_low else int(next(filter(None, ended.groups()))) % 128
    return next((one.kind for one in RULES if one.holds(texts, signal, is_low=is_low)), otherwise)
