"""Real output of Slurm 22.05 and 24.11."""

from zoneinfo import ZoneInfo

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
SAME_ROWS = (
    "sacct_core_X_D_epoch.psv", "sacct_core_X_D_iso_offset.psv", "sacct_core_X_D_noconvert.psv",
    "sacct_core_X_D_trailing_pipe.psv", "sacct_core_X_D_tz_new_york.psv",
    "sacct_core_X_D_tz_new_york_offset.psv",
)  # fmt: skip


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
