"""Failure kinds of lines in a job's log: exceptions, signals, CUDA, NCCL and host-memory messages.

The rules are tried in order, so that the kind of `RuntimeError: CUDA error: ...` is the more
specific one. What each kind means is in `reference/failure_kinds.csv`, in the same order. A line
without a rule has no kind: other text is not guessed at. The texts of CUDA are those that
cudaGetErrorString returns.
"""

import re
from typing import Final

_NAME = r"^\s*(?:[A-Za-z_]\w*\.)*"  # of the module that defines an exception
_SAYS = r"(?:\s*:|\s*$)"  # what follows it
# consequences of a failure elsewhere, and ends that somebody asked for
_NO_FAILURE: Final = re.compile(
    r"SIGTERM|SIGINT|signal: (?:15|Terminated)|signal 15\b"
    + rf"|{_NAME}(?:ChildFailedError|SignalException|CalledProcessError|KeyboardInterrupt){_SAYS}"
)


def _exception(*names: str) -> str:
    return rf"{_NAME}(?:{'|'.join(names)}){_SAYS}"


_PATTERNS: Final[dict[str, tuple[str, ...]]] = {
    "gpu_hardware": (
        r"uncorrectable (?:ECC|NVLink) error",
        r"CUDA_ERROR_(?:ECC|NVLINK)_UNCORRECTABLE|CUDA_ERROR_HARDWARE_STACK_ERROR",
        r"CUDA error: (?:hardware stack error|unrecoverable)",
        r"GPU has fallen off the bus|GPU is lost|NVML_ERROR_GPU_IS_LOST",
    ),
    "gpu_unavailable": (
        r"CUDA-capable device\(s\) is/are busy or unavailable|no CUDA-capable device is detected",
        r"No CUDA GPUs are available|Found no NVIDIA driver|system not yet initialized",
        r"CUDA_ERROR_(?:NO_DEVICE|DEVICE_UNAVAILABLE|SYSTEM_NOT_READY|SYSTEM_DRIVER_MISMATCH)",
    ),
    "oom": (
        r"CUDA out of memory|CUDA error: out of memory|CUDA_ERROR_OUT_OF_MEMORY",
        r"\bcudaErrorMemoryAllocation\b|CUBLAS_STATUS_ALLOC_FAILED",
        _exception(r"(?:cuda\.)?OutOfMemoryError"),
    ),
    "host_memory": (
        _exception("MemoryError", r"_?ArrayMemoryError"),
        r"\boom[-_ ]kill|\bOOMKilled\b|Out of memory: Kill|Memory cgroup out of memory",
        r"\[Errno 12\]|Cannot allocate memory|std::bad_alloc|DefaultCPUAllocator: ",
        r"Exceeded (?:job|step) memory limit|srun: error: .*: Out Of Memory\s*$",
    ),
    "bus_error": (r"\b[Bb]us error\b|\bSIGBUS\b|Unexpected bus error|insufficient shared memory",),
    "nan": (
        r"\bloss['\"]?\s*[:=]\s*['\"]?[+-]?(?:nan|inf(?:inity)?)\b",
        r"\bloss\s+[+-]?(?:nan|inf(?:inity)?)\b",
        r"\bnan\b.{0,60}\bloss(?:es)?\b(?!.scal)|\bloss(?:es)? (?:is|was|became|turned)\b.{0,30}\b"
        r"(?:nan|inf|infinite|non-?finite)\b|\bnon-?finite loss\b",
    ),
    "missing_module": (
        _exception("ModuleNotFoundError", "ImportError"),
        r"error while loading shared libraries: ",
    ),
    "file_not_found": (_exception("FileNotFoundError"), r"can't open file .*\[Errno 2\]"),
    "permission": (_exception("PermissionError"), r"\[Errno 13\]"),
    "disk_full": (r"No space left on device|Disk quota exceeded|\[Errno (?:28|122)\]",),
    "storage": (
        r"\[Errno (?:5|116|121)\]|Stale (?:NFS )?file handle|Input/output error",
        r"Transport endpoint is not connected|Remote I/O error",
    ),
    "device_mismatch": (
        r"Expected all tensors to be on the same device",
        r"Input type \([^)]{1,99}\) and weight type \([^)]{1,99}\) should be the same",
    ),
    "cuda_error": (
        r"CUDA error: |\bCUDA_ERROR_[A-Z_]+|\bcudaError[A-Z]\w+|CUDA driver error: ",
        r"\.cuh?:\d{1,6}: .{0,200}Assertion .{1,200} failed",
        r"\b(?:CUBLAS|CUDNN|CUSPARSE)_STATUS_[A-Z_]+",
        _exception("AcceleratorError"),
    ),
    "division_by_zero": (_exception("ZeroDivisionError"), r"\b[Ff]loating point exception\b"),
    "assertion": (_exception("AssertionError"), r"\bAssertion [`'].*' failed\."),
    "nccl_timeout": (
        r"Watchdog caught collective operation timeout",
        r"Timed out waiting \d+ ?ms for (?:recv|send) operation",
    ),
    "nccl_error": (
        r"\bNCCL (?:error|failure)\b|\bnccl(?:System|Internal|UnhandledCuda|Remote)Error\b",
        r"\bnccl(?:InvalidUsage|InvalidArgument)\b|NCCL communicator was aborted",
        _exception("DistBackendError"),
    ),
    "network": (
        _exception(
            "ConnectionError",
            "Connection(?:Reset|Refused|Aborted)Error",
            "BrokenPipeError",
            "TimeoutError",
            "Dist(?:Network|Store)Error",
        ),
        rf"{_NAME}\w+(?:Error|Exception): .*(?:Connection (?:reset|refused|closed)|"
        r"connectFullMesh|Network is unreachable|No route to host|Socket Timeout)",
    ),
    "segfault": (
        r"\b[Ss]egmentation fault\b|\bSIGSEGV\b|Signal code: Address not mapped",
        r"(?:exit|exited with)(?:ed)? (?:exit )?code:? 139\b",
    ),
    "sigabrt": (
        r"\bSIGABRT\b|\b[Aa]borted\s+\(core dumped\)|terminate called (?:after|without)",
        r"(?:exit|exited with)(?:ed)? (?:exit )?code:? 134\b",
    ),
    "sigkill": (
        r"\bSIGKILL\b|is killed by signal: Killed|(?:^|\s|:)Killed\s*$|: +\d+ Killed\s",
        r"(?:exit|exited with)(?:ed)? (?:exit )?code:? 137\b",
    ),
    "runtime_error": (_exception("RuntimeError"),),
    "exception": (
        r"^\s*(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)(?:: |:?\s*$)",
        r"^\s*Fatal Python error: ",
        r"(?:exit|exited with)(?:ed)? (?:exit )?code:? (?:[1-9]|[1-9]\d|1[01]\d|12\d)\b",
    ),
}
RULES: Final = tuple(
    (kind, re.compile("|".join(f"(?:{pattern})" for pattern in patterns), _flags))
    for kind, patterns in _PATTERNS.items()
    for _flags in (re.IGNORECASE if kind == "nan" else 0,)
)
KINDS: Final = tuple(_PATTERNS)  # the most specific first
# only a line with one of these is looked at: each costs a little of every line of every log
HINTS: Final = (
    *("Error", "error", "Exception", "exit code", "[Errno", "bad_alloc", "fallen off", "Assertion"),
    *("Killed", "egmentation fault", "borted", "us error", "SIG", "loating point"),
    "terminate called",
    *("NaN", "NAN", "oss: nan", "oss = nan", "oss=nan", "oss is n", "oss nan"),
    *("finite loss", "oss inf"),
    *("oss: inf", "oss = inf", "oss=inf", "oss is inf"),
)
TEXT_MAX_CHARS: Final = 2_000  # what a line says it says early


def kind_of(text: str) -> str | None:
    """Return the failure kind of a line, free of a collector's labels; None: it says none."""
    text = text[:TEXT_MAX_CHARS]
    if _NO_FAILURE.search(text):
        return None
    return next((kind for kind, pattern in RULES if pattern.search(text)), None)
