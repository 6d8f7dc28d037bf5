"""Client of the server that has the database file open.

The server writes `<database>.server.json` next to the file (mode 0600: address, token, instance).
Whoever can read that can read the database itself, so the token grants nothing new. A call is a
JSON head and a Polars frame in Arrow IPC, an answer such a frame; errors come back as themselves.
"""

import contextlib
import io
import json
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import httpx
import polars as pl

from goodput_queries import errors
from goodput_queries.errors import GoodputError, StoreError
from goodput_queries.evidence.batch import Batch, Loaded, Reject
from goodput_queries.scope import EVERYTHING, Scope

LOOPBACK_HOSTS = frozenset({"127.0.0.1", "::1", "localhost"})
HEAD_LENGTH_BYTES = 8
CONNECT_TIMEOUT_S = 2.0
HEALTH_TIMEOUT_S = 3.0
READ_TIMEOUT_S = 600.0  # a read without a limit of its own
READ_GRACE_S = 10.0  # what an answer may take beyond the limit of its query
LOAD_TIMEOUT_S = 600.0
BUILD_TIMEOUT_S = 3600.0
BACKUP_TIMEOUT_S = 3600.0


@dataclass(frozen=True)
class ServerNote:
    """The server's address and token, in a file next to the database for processes of its user."""

    url: str
    token: str
    pid: int
    instance: str
    database: str


class RemoteStore:
    """The database through the server that has it open; the same methods as `LocalStore`."""

    def __init__(self, note: ServerNote) -> None:
        """Prepare calls to the server that left `note`; nothing is sent yet."""
        self.path = note.database
        self.url = note.url
        self.pid = note.pid
        self._server = f"the server at {note.url}" + (f" (process {note.pid})" if note.pid else "")
        self._client = httpx.Client(
            base_url=note.url,
            headers={"Authorization": f"Bearer {note.token}", "Accept-Encoding": "identity"},
            timeout=httpx.Timeout(READ_TIMEOUT_S, connect=CONNECT_TIMEOUT_S),
            trust_env=False,  # a proxy of the environment has no business on the loopback
        )

    @classmethod
    def at(cls, url: str, token: str) -> Self:
        """Return the store of a server whose address and token are known, but not its process."""
        return cls(ServerNote(url.rstrip("/"), token, 0, "", url))

    def load(self, batch: Batch, *, is_polled: bool = False) -> Loaded:
        """Commit a batch; see `Store.load`. Repeating one that was cut off is safe."""
        head = {
            "table": batch.table,
            "source": batch.source,
            "origin": batch.origin,
            "digest": batch.digest,
            "rejects": [[r.line, r.reason, r.content] for r in batch.rejects],
            **({"is_polled": True} if is_polled else {}),  # an older server knows no such
        }
        answer = self._post("load", pack(head, batch.rows), LOAD_TIMEOUT_S)
        return Loaded(**answer.json())

    def read(
        self,
        sql: str,
        parameters: Sequence[Any] | Mapping[str, Any] | None = None,
        *,
        scope: Scope = EVERYTHING,
        timeout_s: float | None = None,
        is_kept: bool = False,
    ) -> pl.DataFrame:
        """Return the rows of a select as a frame; see `Store.read`. The server keeps nothing."""
        del is_kept
        head = {"sql": sql, "scope": asdict(scope), "timeout_s": timeout_s}
        wait_s = READ_TIMEOUT_S if timeout_s is None else timeout_s + READ_GRACE_S
        answer = self._post("read", pack(head, _as_frame(parameters)), wait_s)
        return _frame(answer.content)

    def build(self, *, is_full: bool = False) -> pl.DataFrame:
        """Bring the ledger up to date; see `Store.build`."""
        answer = self._post("build", pack({"is_full": is_full}, None), BUILD_TIMEOUT_S)
        return _frame(answer.content)

    def back_up(self, target: str | Path) -> pl.DataFrame:
        """Let the server copy its database to a path of this machine; see `storage.backup`."""
        head = {"target": str(Path(target).resolve())}
        return _frame(self._post("backup", pack(head, None), BACKUP_TIMEOUT_S).content)

    def close(self) -> None:
        """Release the connections; the server keeps its database."""
        self._client.close()

    def _post(self, call: str, body: bytes, wait_s: float) -> httpx.Response:
        try:
            answer = self._client.post(
                f"/api/v1/store/{call}",
                content=body,
                timeout=httpx.Timeout(wait_s, connect=CONNECT_TIMEOUT_S),
            )
        except httpx.TimeoutException as error:
            raise StoreError(
                f"{self.path}: {self._server} did not answer "
                f"`{call}` within {wait_s:g} s. Look at it there, or stop it and try again."
            ) from error
        except httpx.TransportError as error:
            raise StoreError(
                f"{self.path}: {self._server} stopped during "
                f"`{call}`. Run the command again: what was acknowledged is kept."
            ) from error
        if answer.status_code != httpx.codes.OK:
            raise self._failure(call, answer)
        return answer

    def _failure(self, call: str, answer: httpx.Response) -> GoodputError:
        """Return the error of the other side: the same class, the same sentence."""
        with contextlib.suppress(ValueError, TypeError, KeyError):
            said = answer.json()
            kind = getattr(errors, str(said["error"]), None)
            if isinstance(kind, type) and issubclass(kind, GoodputError):
                return kind(str(said["message"]))
        return StoreError(
            f"{self.path}: {self._server} failed in `{call}` "
            f"(HTTP {answer.status_code}). Its log says why."
        )


def note_path(path: str | Path) -> Path:
    """Return where the server of the database at `path` leaves its note."""
    resolved = Path(path).resolve()
    return resolved.with_name(f"{resolved.name}.server.json")


def write_note(note: ServerNote) -> None:
    """Write the note atomically, readable by this user only."""
    target = note_path(note.database)
    draft = target.with_name(f"{target.name}.{note.pid}")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(asdict(note), file)
    draft.replace(target)


def remove_note(note: ServerNote) -> None:
    """Remove the note, unless another server has put its own there since."""
    with contextlib.suppress(StoreError):
        if read_note(note.database) == note:
            note_path(note.database).unlink(missing_ok=True)


def read_note(path: str | Path) -> ServerNote | None:
    """Return the note next to a database; None where it is missing or cannot be parsed.

    Raises StoreError where others could have written or read it: its token would prove nothing.
    """
    file_path = note_path(path)
    try:
        descriptor = os.open(file_path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(
            f"{file_path}: the note of the running server cannot be read ({error.strerror}). "
            "Run this as the user of the server."
        ) from error
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            raise StoreError(
                f"{file_path}: the note of the running server belongs to another user, so its "
                "token is not used. Run this as the user of the server."
            )
        if status.st_mode & 0o077:
            raise StoreError(
                f"{file_path}: the note of the running server is open to other users, so its "
                f"token is not used. Expected mode 0600: `chmod 600 {file_path}`."
            )
        text = file.read(65_536)
    try:
        note = ServerNote(**json.loads(text))
    except (ValueError, TypeError):
        return None
    if note.database != str(Path(path).resolve()):
        return None  # copied along with the database of someone else
    return note if urlsplit(note.url).hostname in LOOPBACK_HOSTS else None


def find_server(path: str | Path) -> RemoteStore | None:
    """Return the store of the server that has the database at `path` open, None where none answers.

    A note of a server that is gone is ignored; one open to others raises StoreError.
    """
    if str(path) == ":memory:" or (note := read_note(path)) is None:
        return None
    try:
        answer = httpx.get(
            f"{note.url}/healthz",
            timeout=httpx.Timeout(HEALTH_TIMEOUT_S, connect=CONNECT_TIMEOUT_S),
            trust_env=False,
        )
        is_the_one = answer.json()["instance"] == note.instance
    except (httpx.HTTPError, ValueError, KeyError, TypeError):
        return None
    return RemoteStore(note) if is_the_one else None


def pack(head: dict[str, Any], frame: pl.DataFrame | None) -> bytes:
    """Return a call as bytes: the length of the head, the head as JSON, the frame as Arrow IPC."""
    text = json.dumps(head).encode()
    return len(text).to_bytes(HEAD_LENGTH_BYTES, "big") + text + packed(frame)


def packed(frame: pl.DataFrame | None) -> bytes:
    """Return a frame as an Arrow IPC stream; nothing where there is no frame or no column."""
    if frame is None or not frame.columns:
        return b""
    stream = io.BytesIO()
    frame.write_ipc_stream(stream)
    return stream.getvalue()


def unpack(body: bytes) -> tuple[dict[str, Any], pl.DataFrame]:
    """Return the head and the frame of a call; raises ValueError where the bytes are not one."""
    length = int.from_bytes(body[:HEAD_LENGTH_BYTES], "big")
    end = HEAD_LENGTH_BYTES + length
    if len(body) < end:
        raise ValueError("cut short")
    head = json.loads(body[HEAD_LENGTH_BYTES:end])
    if not isinstance(head, dict):
        raise ValueError("the head is not an object")
    try:
        return head, _frame(body[end:])
    except pl.exceptions.PolarsError as error:
        raise ValueError("the frame is not Arrow IPC") from error


def batch_of(body: bytes) -> tuple[Batch, bool]:
    """Return the batch of a `load` call, and whether a source that is polled brought it."""
    head, rows = unpack(body)
    is_polled = head.pop("is_polled", False)
    rejects = tuple(Reject(*fields) for fields in head.pop("rejects"))
    return Batch(rows=rows, rejects=rejects, **head), is_polled


def query_of(body: bytes) -> tuple[str, list[Any] | dict[str, Any] | None, Scope, float | None]:
    """Return select, parameters, scope and time limit of a `read` call."""
    head, frame = unpack(body)
    return head["sql"], _parameters(frame), Scope(**head["scope"]), head["timeout_s"]


def _frame(stream: bytes) -> pl.DataFrame:
    return pl.read_ipc_stream(io.BytesIO(stream)) if stream else pl.DataFrame()


def _as_frame(parameters: Sequence[Any] | Mapping[str, Any] | None) -> pl.DataFrame:
    """Return parameters as one row, so that moments, decimals and lists keep their types."""
    if parameters is None:
        return pl.DataFrame()
    if isinstance(parameters, Mapping):
        return pl.DataFrame({name: [value] for name, value in parameters.items()})
    return pl.DataFrame({str(n): [value] for n, value in enumerate(parameters, start=1)})


def _parameters(frame: pl.DataFrame) -> list[Any] | dict[str, Any] | None:
    if not frame.columns:
        return None
    row = frame.row(0, named=True)
    return list(row.values()) if next(iter(row)).isdigit() else row
