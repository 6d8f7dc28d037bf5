"""Nodes: slots, MIG instances, states at the moment of asking, and what jobs ask of them."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from tests.ingest.golden_cases import golden_path
from tests.tables import gives, refuses

from goodput_ingest.formats import gres
from goodput_ingest.formats.gres import gpu_gres
from goodput_ingest.sources.slurm.jobs import parse_jobs
from goodput_ingest.sources.slurm.nodes import parse_sinfo
from goodput_queries.errors import IngestError

test_indices_that_cannot_be_leave_the_number_of_gpus = gives(
    lambda index: [(of.gpus, of.indices) for of in gpu_gres(f"gpu:h100:1(IDX:{index})")],
    *((index, [(1, None)]) for index in ("99999999999", "1024", "0-2")),
)
test_parts_of_gpus_in_a_gres_text = gives(
    gres.parts,
    ("shard:a40:2(IDX:0)", {"shard": 2}), ("gres/mps:50", {"mps": 50}),
    ("gres/shard=2,gres/mps:a40=25", {"shard": 2, "mps": 25}),
    ("gpu:a40:1(IDX:0),shard:2(0/4,2/4)", {"shard": 2}), ("gpu:h100:8", {}), ("shard:a40:many", {}),
)  # fmt: skip


test_a_sinfo_text_of_unknown_columns_is_refused = refuses(
    IngestError,
    lambda text: parse_sinfo(text, cluster="lab", observed_at=None),
    ("n1|idle\n", "with a header"),
)


NOON = datetime.fromisoformat("2026-11-20 12:00")
JOBS = golden_path("slurm/scontrol_jobs_that_ask_for_nodes/input.txt")
JOB = JOBS.read_text().splitlines()[0]  # which waits for resources


def test_listings_with_one_reason_are_one_row_in_ten_minutes(store):
    for minute, reason in enumerate(("Priority", "Priority", "Resources", "Resources")):
        at = NOON + timedelta(minutes=6 * minute)
        text = JOB.replace("Reason=Resources", f"Reason={reason}")
        _, _, asked = parse_jobs(text, cluster="lab", zone=ZoneInfo("UTC"), observed_at=at)
        store.load(asked.batch(source="slurm", origin="here", digest=f"{minute}"))

    asked = store.read("select minute(observed_at), reason from raw.job_requests order by 1")
    assert asked.rows() == [(6, "Priority"), (18, "Resources")]


test_cluster_and_zone_are_asked_for = refuses(
    IngestError, lambda cluster: parse_jobs(JOB, cluster=cluster, zone=None),
    (None, "--cluster"), ("lab", "--timezone"),
)  # fmt: skip
