"""Small files of a lake beside its tables, in its folder or object store."""

from __future__ import annotations

from typing import TYPE_CHECKING

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

    def read(self, folder: str) -> Iterator[tuple[str, str]]:
        """Yield the path and the text of each file in a folder."""
        try:
            for page in obstore.list(self._store, folder):
                for one in page:
                    found = bytes(obstore.get(self._store, one["path"]).bytes())
                    yield f"{self._url}/{one['path']}", found.decode()
        except (store_errors.BaseError, OSError) as error:
            raise StoreError(f"{self._url}/{folder}: cannot be read: {error}") from error
