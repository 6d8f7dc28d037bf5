"""Files that a site adds to what is read: a folder with `profiles` and `exporters`."""

from pathlib import Path

_folder: list[Path] = []


def use_site_folder(folder: Path) -> None:
    """Read by the files of this folder, too, from now on, in this process."""
    _folder[:] = [folder]


def site_files(kind: str, pattern: str) -> list[Path]:
    """Return the site's files of a kind, `profiles` or `exporters`, that fit a pattern."""
    return [path for folder in _folder for path in sorted((folder / kind).glob(pattern))]
