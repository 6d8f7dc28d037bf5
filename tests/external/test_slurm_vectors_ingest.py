"""Real output of Slurm 22.05 and 24.11."""

import csv
from zoneinfo import ZoneInfo

import pytest
from tests.external_data import EXTERNAL, reading

from goodput_ingest.formats.hostlist import expand
from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.slurm.texts import Slurm

pytestmark = reading(EXTERNAL)
SLURM = EXTERNAL / "slurm"
RELEASES = ("22.05.8", "24.11.5")
HELD_GPU_S = {"22.05.8": 5_089, "24.11.5": 4_330}
HELD = """
select
    job_id, job_id_raw, gpus, gpu_type, epoch(submit_at)::bigint as submit_s, end_at, suspended_s,
    gpus * date_diff('second', greatest(start_at, submit_at), end_at) as held_gpu_s
from raw.job_runs
"""
READ_HERE = (
    *("sacct_core_", "sacct_all_fields_", "sacctmgr_event_", "sacctmgr_reservation"),
    *("scontrol_job_d_", "scontrol_node_", "scontrol_reservation_", "sinfo_"),
)
SAME_ROWS = (
    "sacct_core_X_D_epoch.psv",
    "sacct_core_X_D_iso_offset.psv",
    "sacct_core_X_D_noconvert.psv",
    "sacct_core_X_D_trailing_pipe.psv",
    "sacct_core_X_D_tz_new_york.psv",
    "sacct_core_X_D_tz_new_york_offset.psv",
)


def zone_of(file, release):
    """Return the zone the file was printed in: 22.05 ignores %z, so its offsets are not there."""
    is_local = "tz_new_york" in file and not (release == "24.11.5" and "offset" in file)
    return ZoneInfo("America/New_York" if is_local else "UTC")


@pytest.mark.parametrize("release", RELEASES)
def test_every_record_holds_what_it_held(release, store):
    file = SLURM / release / "final" / "sacct_core_X_D_unit_separator.txt"
    ingest(store, "slurm", [file], ReadOptions(zone=ZoneInfo("UTC")))
    found = {(r["job_id"], r["submit_s"]): r for r in store.read(HELD).iter_rows(named=True)}

    with (SLURM / f"expected_gpu_seconds_{release}.csv").open() as lines:
        expected = list(csv.DictReader(lines))

    assert len(found) == len(expected)
    for record in expected:
        row = found[record["jobid"], int(record["submit_epoch"])]
        assert (row["held_gpu_s"] or 0) == int(record["held_gpu_s"])
        assert row["gpus"] == int(record["gpus"])
        assert (row["gpu_type"] or "") == record["gpu_type"]
        assert row["suspended_s"] == int(record["suspended_s"])
        assert row["job_id_raw"] == record["jobidraw"]
    assert sum(row["held_gpu_s"] or 0 for row in found.values()) == HELD_GPU_S[release]


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("file", SAME_ROWS)
def test_a_row_means_the_same_however_it_was_printed(release, file):
    folder = SLURM / release / "final"
    reported = [
        next(Slurm(folder / name, ReadOptions(zone=zone_of(name, release))).extract())
        for name in ("sacct_core_X_D_unit_separator.txt", file)
    ]

    without_job_19 = reported[0].rows.filter(reported[0].rows["job_id"] != "19")
    ignored = ["alloc_tres", "req_tres"]
    assert reported[1].rows.drop(ignored).equals(without_job_19.drop(ignored))
    assert [reject.reason for reject in reported[1].rejects] == [
        f"slurm: line {reported[1].rejects[0].line} has {31 + ('trailing' in file)} fields, "
        f"expected {29 + ('trailing' in file)}: a name holds a |? "
        "`--delimiter=$'\\x1f'` of sacct keeps fields apart."
    ]


@pytest.mark.parametrize("release", RELEASES)
def test_listings_while_jobs_ran_are_overtaken_by_later_ones(release, store):
    """Reading the middle, then the end, gives what reading the end alone gives."""
    for moment in ("midrun", "final", "midrun"):
        file = SLURM / release / moment / "sacct_core_X_D_unit_separator.txt"
        ingest(store, "slurm", [file], ReadOptions(zone=ZoneInfo("UTC")))

    held = store.read(f"select sum(held_gpu_s) as held from ({HELD})")

    assert held["held"].to_list() == [HELD_GPU_S[release]]


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("file", ["scontrol_job_d_running.txt", "scontrol_job_d_o_running.txt"])
def test_running_jobs_name_their_gpus(release, file, store):
    options = ReadOptions(cluster="lab", zone=ZoneInfo("UTC"))
    ingest(store, "slurm", [SLURM / release / "running" / file], options)

    named = store.read(
        "select node, count(*) as gpus from raw.holds where slurm_index is not null "
        "group by node order by node"
    )

    assert dict(named.rows()) == (
        {"node002": 8, "node003": 8, "node009": 2}
        if release == "22.05.8"
        else {"node001": 1, "node003": 8, "node004": 3, "node009": 2}
    )


def test_host_lists_expand_as_slurm_printed_them():
    for line in (SLURM / "hostlist_expand.tsv").read_text().splitlines()[1:]:
        text, hosts = line.split("\t")
        assert expand(text) == hosts.split()


@pytest.mark.slow
def test_nothing_else_in_the_folder_is_claimed_and_nothing_crashes(store):
    options = ReadOptions(cluster="lab", zone=ZoneInfo("UTC"))
    for file in sorted(p for r in RELEASES for p in (SLURM / r).rglob("*") if p.is_file()):
        if "sinfo_reasons" in file.name:  # states alone, and not when
            continue
        summary = ingest(store, "auto", [file], options)
        is_ours = file.name.startswith(READ_HERE) or ".json" in file.name
        is_ours &= file.name != "sacct_json_list.txt"
        assert bool(summary.unrecognised) == (not is_ours), file
