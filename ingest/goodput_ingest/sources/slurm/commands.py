"""Running Slurm's commands: fixed arguments, UTC, a time limit, the answer in a file."""

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from goodput_queries.errors import IngestError

ENVIRONMENT = {
    "TZ": "UTC",
    "SLURM_BITSTR_LEN": "0",  # the tasks of a waiting array are not cut at 64 characters
}
# Epoch seconds: the one form that every release prints alike. `sacct --json` of 22.05 reads its own
# dates back in this form, cannot, and ends well without a record.
OF_TEXT = {"SLURM_TIME_FORMAT": "%s"}
SECONDS_OF_STOPPING = 5
REASON_MAX_CHARS = 300
# what sacct and sacctmgr print where their connection to the accounting's server fails
OF_SLURMDBD = re.compile(r"talking to the database|_persist_conn|PersistInit|slurmdbd")


@dataclass(frozen=True)
class Commands:
    """Where Slurm's commands are ('': found on the PATH) and how long one may take."""

    folder: str = ""
    timeout_s: float = 60.0

    @contextmanager
    def answer(self, *arguments: str) -> Iterator[Path]:
        """Give the file with what a command printed; it goes when it was read.

        Accounting can be larger than memory, so it is not held there. Raises IngestError where the
        command is not there, fails or takes too long.
        """
        with tempfile.TemporaryDirectory(prefix="goodput-slurm-") as folder:
            file = Path(folder) / "answer"
            with file.open("wb") as output, (Path(folder) / "errors").open("w+b") as errors:
                status = self._run(arguments, output.fileno(), errors.fileno())
                errors.seek(0)
                said = errors.read(10_000).decode("utf-8", errors="replace").split("\n")
            if status != 0:
                reason = next((line for line in said if line.strip()), "it does not say why")
                is_lost = any(OF_SLURMDBD.search(line) for line in said)
                how = "does not reach slurmdbd" if is_lost else f"failed with {status}"
                raise IngestError(f"slurm: {arguments[0]} {how}: {reason[:REASON_MAX_CHARS]}")
            yield file

    def text(self, *arguments: str) -> str:
        """Return what a command printed, where that is short."""
        with self.answer(*arguments) as file:
            return file.read_text(encoding="utf-8", errors="replace")

    def _run(self, arguments: Sequence[str], output: int, errors: int) -> int:
        name, *rest = arguments
        command = [str(Path(self.folder) / name) if self.folder else name, *rest]
        try:
            process = subprocess.Popen(  # noqa: S603 -- no shell; arguments are ours and dates
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                env=os.environ | ENVIRONMENT | ({} if "--json" in rest else OF_TEXT),
            )
        except OSError as error:
            raise IngestError(
                f"slurm: {command[0]} cannot be run ({error.strerror}). Install Slurm's client "
                "commands, or say where they are with folder in [[collect]]."
            ) from error
        with process:
            try:
                return process.wait(self.timeout_s)
            except subprocess.TimeoutExpired:
                process.terminate()
                try:
                    process.wait(SECONDS_OF_STOPPING)
                except subprocess.TimeoutExpired:
                    process.kill()
                raise IngestError(
                    f"slurm: {name} took longer than {self.timeout_s:g} s and was stopped. "
                    "Allow more with timeout_s, or ask for less with window_s."
                ) from None
