"""What a site adds: log profiles, names of metrics, sources of packages that are installed."""

from pathlib import Path

from goodput_ingest.gpu_metrics import catalogue
from goodput_ingest.site_files import site_files, use_site_folder
from goodput_ingest.sources.job_logs import formats
from goodput_ingest.sources.job_logs.profile_examples import check_examples
from goodput_ingest.sources.job_logs.profiles.profile import load
from goodput_ingest.sources.registry import sources
from goodput_queries.errors import IngestError


def use_plugins(folder: Path | None) -> None:
    """Read by the files of a site's folder and by the sources of packages, in this process.

    Raises IngestError for a folder that is not there, a profile or row that is wrong, a profile
    whose examples give other events than it says, a package's source that cannot be loaded.
    """
    if folder is not None:
        if not folder.is_dir():
            raise IngestError(f"{folder}: there is no such folder; it is `folder` of [plugins].")
        use_site_folder(folder)
        formats.read_again()
        catalogue.read_again()
        for path in site_files("profiles", "*.toml"):
            check_examples(load(path), str(path))
    sources()  # of packages: one that cannot be loaded is an error here, not at its first file
