"""The log profiles of a site: a folder of TOML files."""

from pathlib import Path

from goodput_ingest.sources.job_logs.formats import read_also
from goodput_ingest.sources.job_logs.profiles.examples import check_examples
from goodput_ingest.sources.job_logs.profiles.profile import load
from goodput_queries.errors import IngestError


def use_profiles_in(folder: Path) -> None:
    """Read job logs by the profiles of a folder, too, from now on, in this process.

    One with the name of ours replaces it. Raises IngestError for a folder that cannot be read, a
    profile that is wrong, or one whose examples give other events than it says.
    """
    if not folder.is_dir():
        raise IngestError(f"{folder}: there is no such folder of log profiles.")
    for path in sorted(folder.glob("*.toml")):
        check_examples(load(path), str(path))
    read_also(folder)
