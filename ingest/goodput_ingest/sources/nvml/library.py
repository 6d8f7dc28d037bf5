"""NVML through `pynvml`, any version from 11 to 13: calls by name, errors by what to do about them.

pynvml follows NVIDIA's driver branches. A name may be missing in the module (older pynvml) or in
the driver's library (older driver); both mean that this way of asking does not exist here.
"""

import importlib
from typing import Any

# NVML_ERROR_*, the same numbers in every version
TIMEOUT = 10
GPU_IS_LOST, RESET_REQUIRED = 15, 16
DRIVER_GONE = (1, 9, 12, 18)  # uninitialized, driver not loaded, library not found, mismatch
VERSION_MISMATCH = 18
NO_PERMISSION = 4
NEVER = {  # asking again does not help
    2: "invalid argument",
    3: "not supported",
    NO_PERMISSION: "no permission",
    13: "not in this driver",
    25: "another version of the call",
    26: "deprecated",
}


class NvmlError(Exception):
    """NVML returned an error; the text is its message."""

    def __init__(self, reason: str, code: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code


class NeverAnswersError(NvmlError):
    """This GPU (or driver) does not know the call: leave it, the value is unknown."""


class NoAnswerError(NvmlError):
    """Not this time: no data yet, in use, unknown error. The next reading may have it."""


class GpuGoneError(NvmlError):
    """The GPU fell off the bus or has to be reset; the other GPUs go on."""


class DriverGoneError(NvmlError):
    """The driver is not loaded, was unloaded, or its version does not match the library."""


class Nvml:
    """The calls of a `pynvml` module (or of one that behaves like it)."""

    def __init__(self, module: Any | None = None) -> None:
        """Take the module; None imports `pynvml`. Raises DriverGoneError where there is none."""
        if module is None:
            try:
                module = importlib.import_module("pynvml")
            except ImportError as error:
                raise DriverGoneError("the Python package nvidia-ml-py is not installed") from error
        self.module = module
        self._errors: tuple[type[Exception], ...] = tuple(
            getattr(module, name)
            for name in ("NVMLError", "NVMLLibraryMismatchError")
            if hasattr(module, name)
        )

    def ask(self, function: str, *arguments: Any) -> Any:
        """Return the result of a function; raises one of the errors above."""
        call = getattr(self.module, function, None)
        if call is None:
            raise NeverAnswersError("not in this nvidia-ml-py")
        try:
            return call(*arguments)
        except TypeError as error:  # an older function without this argument
            raise NeverAnswersError("another version of the call") from error
        except self._errors as error:
            raise _sorted(error) from error

    def open(self) -> None:
        """Initialise; raises DriverGoneError with a reason for a person."""
        try:
            self.ask("nvmlInit")
        except DriverGoneError as error:
            if error.code != VERSION_MISMATCH:
                raise
            raise DriverGoneError(
                "the driver was updated while its old library is loaded: restart this collector",
                error.code,
            ) from error
        except NvmlError as error:
            raise DriverGoneError(error.reason, error.code) from error

    def close(self) -> None:
        """Shut down; a driver that is gone already needs none."""
        try:
            self.ask("nvmlShutdown")
        except NvmlError:
            return

    def constant(self, name: str, default: int) -> int:
        """Return a constant of the module; `default` where this version does not have it."""
        return int(getattr(self.module, name, default))


def _sorted(error: Exception) -> NvmlError:
    """Return the error of ours that says what to do."""
    code = getattr(error, "value", None)
    if code is None:  # a mismatch of library and package: the versioned name may still work
        return NeverAnswersError("another version of the call")
    if code in NEVER:
        return NeverAnswersError(NEVER[code], code)
    kind: type[NvmlError] = NoAnswerError
    if code in (GPU_IS_LOST, RESET_REQUIRED):
        kind = GpuGoneError
    elif code in DRIVER_GONE:
        kind = DriverGoneError
    return kind(str(error), code)


def text(answer: object) -> str:
    """Return a text of NVML: pynvml before 11.515 gives bytes."""
    return answer.decode("utf-8", "replace") if isinstance(answer, bytes) else str(answer)
