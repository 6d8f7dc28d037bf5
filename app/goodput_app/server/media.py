"""Files of pages, such as downloads: given only to the people whose pages made them.

Streamlit keeps them in memory under a hash of their content and gives them to whoever names it.
This module imports Streamlit, which takes half a second: import it where a server starts.
"""

import threading

from streamlit import App
from streamlit.runtime import Runtime
from streamlit.runtime.media_file_storage import MediaFileKind, MediaFileStorageError
from streamlit.runtime.memory_media_file_storage import MemoryFile, MemoryMediaFileStorage

from goodput_app.access.current import NotAllowedError, current_identity
from goodput_app.access.identity import Identity


class OwnedMedia(MemoryMediaFileStorage):
    """Files with their owners: who asks while a page's script, or a click of its reader, adds it.

    Two people whose files have the same content own it both.
    """

    def __init__(self, media_endpoint: str) -> None:
        super().__init__(media_endpoint)
        self._owners: dict[str, set[Identity]] = {}
        self._lock = threading.Lock()

    def load_and_get_id(
        self,
        path_or_data: str | bytes,
        mimetype: str,
        kind: MediaFileKind,
        filename: str | None = None,
    ) -> str:
        """Add a file for who asks and return its id; raises NotAllowedError where nobody does."""
        owner = current_identity()
        file_id = super().load_and_get_id(path_or_data, mimetype, kind, filename)
        with self._lock:
            self._owners.setdefault(file_id, set()).add(owner)
        return file_id

    def get_file(self, filename: str) -> MemoryFile:
        """Return a file of who asks; MediaFileStorageError, a 404, for one of somebody else."""
        file_id = filename.partition(".")[0]
        try:
            asker = current_identity()
        except NotAllowedError:
            asker = None
        with self._lock:
            is_own = asker in self._owners.get(file_id, ())
        if not is_own:
            raise MediaFileStorageError(f"Bad filename '{filename}'.")
        return super().get_file(filename)

    def delete_file(self, file_id: str) -> None:
        """Forget a file and its owners."""
        super().delete_file(file_id)
        with self._lock:
            self._owners.pop(file_id, None)


class DashboardApp(App):
    """Streamlit's application, whose files have owners."""

    def _create_runtime(self) -> Runtime:
        """Return the runtime; there is no public way to name its storage of files."""
        runtime = super()._create_runtime()
        manager = runtime.media_file_mgr
        manager._storage = OwnedMedia(manager._storage._media_endpoint)  # type: ignore[attr-defined]
        runtime.stats_mgr.register_provider(manager._storage)
        return runtime
