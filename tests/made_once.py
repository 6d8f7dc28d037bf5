"""A file that is made once for all processes of a test run: databases take seconds to build."""

import os

from filelock import FileLock


def made_once(folders, name, make):
    """Return the file of this name, made by the first process that asks for it; to be copied.

    make: fills an empty folder's file of the path that it gets
    """
    base = folders.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    folder = base / "made" / name
    folder.parent.mkdir(exist_ok=True)
    with FileLock(folder.with_name(f"{name}.lock")):
        path = folder / f"{name}.duckdb"
        if not path.exists():
            folder.mkdir(exist_ok=True)
            draft = folder / "draft.duckdb"
            draft.unlink(missing_ok=True)  # of one that failed
            make(draft)
            draft.replace(path)
    return path
