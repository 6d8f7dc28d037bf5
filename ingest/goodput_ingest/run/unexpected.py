"""Exceptions that no source should raise: one sentence with class and place, traceback on request.

A file that breaks its parser does not affect other files. `CAUGHT` are the exceptions that a broken
parser may raise; callers let MemoryError pass, since a process without memory cannot continue.

    except MemoryError:
        raise
    except CAUGHT as error:
        raise unexpected(path, error) from error
"""

import logging
from types import TracebackType

from polars.exceptions import PanicException

from goodput_ingest.formats.json_text.json_lines import printable
from goodput_queries.errors import UnexpectedError

log = logging.getLogger(__name__)

CAUGHT = (Exception, PanicException)  # a panic of Polars is a BaseException
OURS = "goodput_"
MESSAGE_MAX_CHARS = 200


def unexpected(what: object, error: BaseException) -> UnexpectedError:
    """Return the sentence for an exception met while `what` was read; log its traceback (debug)."""
    log.debug("%s: traceback of the unexpected %s", what, type(error).__name__, exc_info=error)
    message = next(iter(str(error).splitlines()), "").rstrip(".")
    said = f": {printable(message, MESSAGE_MAX_CHARS)}" if message else ""
    return UnexpectedError(
        f"{what}: unexpected {type(error).__name__} at {_place(error.__traceback__)}{said}. "
        "`goodput --debug` shows the traceback; please report it with the file."
    )


def _place(traceback: TracebackType | None) -> str:
    """Return module and line of the innermost frame that is our own code."""
    place = "an unknown place"
    while traceback is not None:
        module = traceback.tb_frame.f_globals.get("__name__", "")
        if module.startswith(OURS):
            place = f"{module}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return place
