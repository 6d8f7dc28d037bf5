"""Small files of a lake beside its tables, in its folder or object store."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from goodput_queries.errors import StoreError

try:
    import obstore
    from obstore import exceptions as store_errors
    from obstore.store import from_url
except ImportError as error:
    raise StoreError(
        "a lake needs the package obstore: pip install 'goodput-ledger[lake]'."
    ) from error

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

READ_AT_ONCE: Final = 16


class LakeObjects:
    """Files below a URL, each written whole or not at all."""

    def __init__(self, url: str, storage_options: Mapping[str, str]) -> None:
        """Take a folder or a URL and what `deltalake` takes as options; nothing is read yet."""
        self._url = url
        if "://" in url:
            # the types know the options of each kind of store apart, `deltalake` one dictionary
            self._store = from_url(url, config=dict(storage_options))  # type: ignore[call-overload]
        else:
            self._store = from_url(f"file://{url}")

    def write(self, path: str, text: str) -> None:
        """Write a file, or replace it; raises StoreError where that fails."""
        try:
            obstore.put(self._store, path, text.encode())
        except (store_errors.BaseError, OSError) as error:
            raise StoreError(f"{self._url}/{path}: cannot be written: {error}") from error

    def folders(self, folder: str) -> list[str]:
        """Return the names of the folders in a folder."""
        try:
            found = obstore.list_with_delimiter(self._store, folder)["common_prefixes"]
        except (store_errors.BaseError, OSError) as error:
            raise StoreError(f"{self._url}/{folder}: cannot be read: {error}") from error
        return [path.rpartition("/")[2] for path in found]

    def read(self, folder: str, *, after: str = "", suffix: str = "") -> Iterator[tuple[str, str]]:
        """Yield the path and the text of each file in a folder, several read at once.

        after: only of names that sort after this one. A file that goes meanwhile is left out.
        """
        offset = f"{folder}/{after}" if after else None
        try:
            pages = obstore.list(self._store, folder, offset=offset)
            paths = [one["path"] for page in pages for one in page]
        except (store_errors.BaseError, OSError) as error:
            raise StoreError(f"{self._url}/{folder}: cannot be read: {error}") from error
        with ThreadPoolExecutor(READ_AT_ONCE) as pool:
            wanted = sorted(path for path in paths if path.endswith(suffix))
            for path, text in zip(wanted, pool.map(self._text, wanted), strict=True):
                if text is not None:
                    yield f"{self._url}/{path}", text

    def _text(self, path: str) -> str | None:
        try:
            return bytes(obstore.get(self._store, path).bytes()).decode()
        except (store_errors.NotFoundError, FileNotFoundError):
            return None
        except (store_errors.BaseError, OSError) as error:
            raise StoreError(f"{self._url}/{path}: cannot be read: {error}") from error
