"""Failure kinds of lines in a job's log: exceptions, signals, CUDA, NCCL and host-memory messages.

The rules are tried in order, so that the kind of `RuntimeError: CUDA error: ...` is the more
specific one. What each kind means is in `reference/failure_kinds.csv`, in the same order. A line
without a rule has no kind: other text is not guessed at. The texts of CUDA are those that
cudaGetErrorString returns.
"""

import re
import tomllib
from importlib.resources import files
from typing import Final

_NAME = r"^\s*(?:[A-Za-z_]\w*\.)*"  # of the module that defines an exception
_SAYS = r"(?:\s*:|\s*$)"  # what follows it
# consequences of a failure elsewhere, ends that somebody asked for, and what only speaks of one: a
# metric, advice, a shell's trace, data, what was handled
_NO_FAILURE: Final = re.compile(
    r"SIGTERM|SIGINT|signal: (?:15|Terminated)|signal 15\b|EXIT CODE: 15\b"
    + rf"|{_NAME}(?:ChildFailedError|SignalException|KeyboardInterrupt){_SAYS}"
    + rf"|{_NAME}CalledProcessError{_SAYS}(?!.*died with)|{_NAME}SystemExit(?:: (?:0|None))?\s*$"
    + r"|^\s*\w*Error: [+-]?\d+\.\d+(?:e[+-]?\d+)?%?\s*(?:$|[,;|])"
    + r"|^\W*(?:If|When you)\b|^\++ |[;,] (?:retrying|falling back)\b"
    + r"|^\W*(?i:prompt|question|instruction|sample|completion|user|assistant)\b[^:]{0,20}:"
    + r"|\bSIG[A-Z]{3,4} (?:cannot|will|handlers?)\b"
    + r"|\.py:\d{1,6}: \w*Warning: (?!CUDA initialization)"
)
# behind what happened, of whatever kind it was: Ray lists what may have
_POSSIBLE: Final = re.compile(r"(?:potential root|common|possible) causes\b")


def _rules() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return kind and pattern of each rule of `failure_kinds.toml`, in order."""
    file = files("goodput_ingest.sources.job_logs") / "failure_kinds.toml"
    return tuple(
        (kind, re.compile("|".join(f"(?:{one})" for one in _patterns(rule)), _flags(kind)))
        for kind, rule in tomllib.loads(file.read_text("utf-8")).items()
    )


def _patterns(rule: dict[str, list[str]]) -> list[str]:
    names = "|".join(rule.get("exceptions", ()))
    return [*rule.get("patterns", ()), *([rf"{_NAME}(?:{names}){_SAYS}"] if names else ())]


def _flags(kind: str) -> int:
    return re.IGNORECASE if kind == "nan" else 0


RULES: Final = _rules()
KINDS: Final = tuple(kind for kind, _ in RULES)  # the most specific first
# only a line with one of these is looked at: each costs a little of every line of every log
HINTS: Final = (
    *("Error", "error", "Exception", "exit code", "[Errno", "bad_alloc", "fallen off", "ssertion"),
    *("Killed", "borted", "SIG", "loating point", "terminate called"),
    *("what(): ", "heck failed", "CHECK failed", "panicked at", "return code", "o such file"),
    *("ermission denied", "not found", "No module named", "file named", "division by ", "by zero"),
    *("egfault", "ut of memory", "OOM when", "emory allocation", "bytes failed", "job killed"),
    *("TERM_MEMLIMIT", "memory limit", "UDA failure", "uda failure", "llocate memory"),
    *("ASSERT FAILED", "ASSERTION FAILED", "uassert", "device ordinal", "cannot find -l"),
    *("was encountered", "launch failure", "ASSERT(", "EACCES", "ENOENT", "RESOURCE_EXHAUSTED"),
    *("scale reached", "modulefile", "StopIteration", "TimeoutExpired"),
    *("CompilerFailed", "NaN", "NAN", "nan loss", "Invalid loss", "oss: nan", "oss = nan"),
    *("oss=nan", "oss is n", "oss nan", "finite loss", "oss inf", "oss: inf", "oss = inf"),
    *("oss=inf", "oss is inf", "GPU is lost", "GPU_IS_LOST", "No space left", "uota exceeded"),
    *("file handle", "ransport endpoint", "CUDA_ERROR_", "version mismatch", "device driver"),
    *("MPI_ABORT", "non-zero status", "socket.timeout", "AddressSanitizer", "oom-kill:"),
    *("oom-killer", "_STATUS_", "access fault by GPU", "ASSERT: ", "_qp failed", "Got completion"),
    *("Resource exhausted", "Read-only file", "launch failed", "FATAL", "atal error"),
    *("llegal instruction", "egmentation ", "insufficient virtual", "no package called"),
    *("ould not load", "find the specified", "as it could not", "find an executable"),
    *("ASSERTION_FAILED", "already at min", "lost communication"),
    *("called MPI_Abort", "EXIT CODE", "KILLED BY"),
)
TEXT_MAX_CHARS: Final = 2_000  # what a line says it says early


def kind_of(text: str, otherwise: str | None = None) -> str | None:
    """Return the failure kind of a line, free of a collector's labels; None: it is no failure.

    otherwise: the kind of a line that no rule knows
    """
    text = text[:TEXT_MAX_CHARS]
    if _NO_FAILURE.search(text):
        return None
    text = _POSSIBLE.split(text, maxsplit=1)[0]
    return next((kind for kind, pattern in RULES if pattern.search(text)), otherwise)
