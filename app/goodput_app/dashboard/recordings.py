"""Recordings that the Data page replays: uploaded, or in the folder that the settings name."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from goodput_app import replay_process
from goodput_app.access import audit, rows
from goodput_app.access.identity import Action
from goodput_app.replay import is_database
from goodput_app.settings import settings
from goodput_queries.database import Store
from goodput_queries.errors import GoodputError, stated
from goodput_queries.storage.file_lock import temporary_folder

RECORDINGS_MAX = 500
NAME_MAX_CHARS = 120


class Upload(Protocol):
    """A file as Streamlit gives it."""

    name: str

    def getvalue(self) -> bytes:
        """Return its content."""


def in_folder() -> dict[str, Path]:
    """Return the recordings of the configured folder by name: files, and folders of files.

    Links that lead out of it are left out. Raises GoodputError where it cannot be read.
    """
    chosen = settings().replay.folder
    if chosen is None:
        return {}
    folder = Path(chosen)
    with stated(GoodputError, f"{folder}: recordings cannot be listed"):
        found = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
        root = folder.resolve(strict=True)
        return {path.name: path for path in found if path.resolve().is_relative_to(root)}


def start(store: Store, name: str, speed: float, address: str) -> None:
    """Replay a recording of the folder. Raises NotAllowedError for somebody without the role."""
    rows.require_all_teams("recordings")
    with audit.acting(store, Action.REPLAY_RECORDING, name):
        path = in_folder().get(name)
        if path is None:
            raise GoodputError(f"{name!r} is not a recording of the folder.")
        replay_process.start([path], name, speed, address)


def start_uploaded(store: Store, uploads: Sequence[Upload], speed: float, address: str) -> None:
    """Replay uploaded files. Raises NotAllowedError for somebody without the role.

    A database is refused: opening one runs what its views say.
    """
    rows.require_all_teams("recordings")
    title = uploads[0].name + (f" and {len(uploads) - 1} more" if len(uploads) > 1 else "")
    with audit.acting(store, Action.REPLAY_RECORDING, f"uploaded: {title}"):
        folder = temporary_folder("goodput-recording-")
        try:
            paths = [
                _saved(Path(folder.name) / str(number), upload)
                for number, upload in enumerate(uploads)
            ]
        except BaseException:
            folder.cleanup()
            raise
        replay_process.start(paths, title, speed, address, folder=folder)


def end(store: Store) -> None:
    """End the replay. Raises NotAllowedError for somebody without the role."""
    running = replay_process.current()
    with audit.acting(store, Action.REPLAY_RECORDING, f"end: {running.title if running else ''}"):
        replay_process.end()


def _saved(folder: Path, upload: Upload) -> Path:
    folder.mkdir()  # of its own: two files may have one name
    path = folder / (Path(upload.name).name[-NAME_MAX_CHARS:] or "recording")
    path.write_bytes(upload.getvalue())
    if is_database(path):
        raise GoodputError(
            f"{upload.name}: a database is not uploaded; put it into the folder of recordings."
        )
    return path
