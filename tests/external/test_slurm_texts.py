"""Real output of Slurm 22.05 and 24.11: texts in every form, and JSON that says what they say."""

from zoneinfo import ZoneInfo

import polars as pl
import pytest
from tests.external_data import EXTERNAL, reading

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.slurm.texts import Slurm

pytestmark = reading(EXTERNAL)
SLURM = EXTERNAL / "slurm"
RELEASES = ("22.05.8", "24.11.5")
READ_HERE = (
    *("sacct_core_", "sacct_all_fields_", "sacctmgr_event_", "sacctmgr_reservation"),
    *("scontrol_job_d_", "scontrol_node_", "scontrol_reservation_", "sinfo_"),
)
SAME_ROWS = ("sacct_core_X_D_epoch.psv", "sacct_core_X_D_iso_offset.psv",
             "sacct_core_X_D_noconvert.psv", "sacct_core_X_D_trailing_pipe.psv",
             "sacct_core_X_D_tz_new_york.psv", "sacct_core_X_D_tz_new_york_offset.psv")  # fmt: skip


def zone_of(file, release):
    """Return the zone the file was printed in: 22.05 ignores %z, so its offsets are not there."""
    is_local = "tz_new_york" in file and not (release == "24.11.5" and "offset" in file)
    return ZoneInfo("America/New_York" if is_local else "UTC")


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


HELD_GPU_S = {"22.05.8": 5_089, "24.11.5": 4_330}
SAME = (
    *("cluster", "job_id", "job_id_raw", "submit_at", "eligible_at", "start_at", "end_at", "state"),
    *("job_name", "user_name", "account", "partition", "qos", "nodes", "gpus", "gpu_type"),
    *("gpus_requested", "cpus", "elapsed_s", "suspended_s", "time_limit_s", "reservation"),
)


def batches_of(file):
    options = ReadOptions(cluster="lab", zone=ZoneInfo("UTC"))
    return {batch.table: batch for batch in Slurm(SLURM / file, options).extract()}


@pytest.mark.parametrize("release", RELEASES)
def test_every_record_is_as_in_the_text(release):
    """Names differ where -P made a back-tick of a quote; the hour of waiting jobs, in 22.05."""
    text = batches_of(f"{release}/final/sacct_core_X_D_unit_separator.txt")["job_runs"].rows
    found = batches_of(f"{release}/final/sacct_D.json.gz")["job_runs"].rows

    order = ["job_id_raw", "submit_at", "end_at"]
    text, found = text.sort(order), found.sort(order)
    for column in SAME:
        differs = text[column].ne_missing(found[column])
        assert text.filter(differs)["job_id"].to_list() == [], column


@pytest.mark.parametrize("is_text_first", [True, False])
def test_records_that_the_text_reports_too_hold_once(is_text_first, store):
    texts = ["sacct_core_X_D_unit_separator.txt", "sacct_D.json.gz"]
    for name in texts if is_text_first else texts[::-1]:
        for release in RELEASES:
            file = SLURM / release / "final" / name
            ingest(store, "auto", [file], ReadOptions(zone=ZoneInfo("UTC")))
        store.build()

    placed = "select sum(end_ms - start_ms) / 1000 from intermediate.int_holds"
    held = """select sum(gpu_ms) / 1000 from marts.ledger_hourly
        where job_run_key is not null group by cluster order by cluster"""
    reported = "select count(distinct job_run_key) = count(*) from intermediate.int_job_runs"
    assert store.read(placed).item() == sum(HELD_GPU_S.values())
    assert store.read(held).to_series().to_list() == [HELD_GPU_S[name] for name in RELEASES]
    assert store.read(reported).item()


@pytest.mark.parametrize("version", ["40", "41"])
def test_three_versions_of_the_parser_say_the_same(version):
    """Only v0.0.42 has the number of restarts."""
    reported = batches_of(f"24.11.5/final/sacct_few_D_v0.0.{version}.json.gz")
    newest = batches_of("24.11.5/final/sacct_few_D_v0.0.42.json.gz")

    for table in ("job_runs", "job_steps"):
        rows = [batch[table].rows.drop("restarts", strict=False) for batch in (reported, newest)]
        assert rows[0].to_dicts() == rows[1].to_dicts()


@pytest.mark.parametrize("release", RELEASES)
def test_running_jobs_name_the_gpus_that_scontrol_names(release):
    text = batches_of(f"{release}/running/scontrol_job_d_running.txt")["holds"].rows
    found = batches_of(f"{release}/running/squeue_running.json.gz")["holds"].rows

    keys = ["job_id_raw", "submit_at", "node", "slurm_index", "gpu_type", "gpus"]
    named = text.filter(pl.col("slurm_index").is_not_null())
    assert found.select(keys).sort(keys).rows() == named.select(keys).sort(keys).rows()
