"""Where a lake is, and its small files beside its tables, in its folder or object store."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from goodput_queries.catalog import models
from goodput_queries.errors import MissingExtraError, StoreError

try:
    import obstore
    from obstore import exceptions as store_errors
    from obstore.store import from_url
except ImportError as error:
    raise MissingExtraError("a lake", "lake") from error

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

    def names(self, folder: str, *, after: str = "") -> list[str]:
        """Return the names of the files in a folder that sort after one."""
        offset = f"{folder}/{after}" if after else None
        try:
            pages = obstore.list(self._store, folder, offset=offset)
            return [one["path"].rpartition("/")[2] for page in pages for one in page]
        except (store_errors.BaseError, OSError) as error:
            raise StoreError(f"{self._url}/{folder}: cannot be read: {error}") from error

    def texts(self, paths: Sequence[str]) -> list[str | None]:
        """Return the texts of files, several read at once; None of one that is not there."""
        if len(paths) < 2:
            return [self._text(path) for path in paths]
        with ThreadPoolExecutor(READ_AT_ONCE) as pool:
            return list(pool.map(self._text, paths))

    def _text(self, path: str) -> str | None:
        try:
            return bytes(obstore.get(self._store, path).bytes()).decode()
        except (store_errors.NotFoundError, FileNotFoundError):
            return None
        except (store_errors.BaseError, OSError) as error:
            raise StoreError(f"{self._url}/{path}: cannot be read: {error}") from error


class LakePlace:
    """A lake as its parts see it, which write to its tables and read their logs."""

    def __init__(
        self, url: str, cluster: str, storage_options: Mapping[str, str] | None = None
    ) -> None:
        """Take the place; nothing is opened. cluster: of rows that name none; '' is unknown."""
        self.url = url
        self.cluster = cluster
        self.storage_options = dict(storage_options or {})
        self.objects = LakeObjects(url, self.storage_options)

    def tables(self) -> list[str]:
        """Return the raw tables that the lake has."""
        found = set(self.objects.folders("raw"))
        return [name for name in models.of_layer("raw") if name in found]

    def url_of(self, table: str) -> str:
        """Return the URL of a raw table."""
        return f"{self.url}/raw/{table}"
