"""The recorded session of four H200s, or parts of it, in a database."""

from pathlib import Path

from goodput_ingest.run import ingest
from goodput_ingest.source import ReadOptions

CAPTURED = "sacct.txt", "nvml.jsonl.gz", "job_events.jsonl.gz", "nccl_inspector/main"
SAMPLE = Path(__file__).parents[1] / "sample_data" / "h200x4-a"


def built(filled, *parts):
    """Return a database of these files or folders of the session, as cluster `lab`, built once."""

    def fill(store):
        paths = [SAMPLE / part for part in parts]
        ingest.ingest(store, "auto", paths, ReadOptions(cluster="lab"))
        store.build()

    return filled("-".join(("recorded", *parts)).replace("/", "_"), fill)


def extent_ms(store):
    """Return the first and the last moment there is evidence of."""
    sql = "select epoch_ms(min(first_at)), epoch_ms(max(as_of_at)) from marts.clusters"
    first, last = store.read(sql).row(0)
    return first, last
