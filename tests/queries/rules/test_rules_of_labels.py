"""Labels on series of GPUs: they name GPUs of known jobs, and holds without a scheduler."""

from __future__ import annotations

import polars as pl
import pytest

from goodput_queries.check import check

START_MS = 1_800_000_000_000


def gpus(evidence, node, count, start=0):
    """Load GPUs of a node, named <node>-0 and so on, by telemetry."""
    evidence.load(
        "gpus",
        [
            {
                "cluster": "c", "node": node, "gpu_uuid": f"{node}-{index}", "gpu_index": index,
                "gpu_model": "h100", "valid_from_at": evidence.at(start),
            }
            for index in range(count)
        ],
        "dcgm",
    )  # fmt: skip


def label(evidence, gpu, owner, start, end, kind="pod", source="dcgm", **more):
    """Load that a GPU bore a label from its first reading with it to its last."""
    row = {
        "gpu_uuid": gpu, "gpu_instance": "", "kind": kind, "owner": owner, "container": "",
        "first_seen_at": evidence.at(start), "last_seen_at": evidence.at(end), **more,
    }  # fmt: skip
    evidence.load("gpu_owners", [row], source)


def readings(evidence, gpu, until, active=True):
    evidence.load(
        "gpu_samples",
        [
            {
                "gpu_uuid": gpu, "gpu_instance": "", "ts": evidence.at(second),
                "engine_active_ratio": 0.9 * active, "is_flagged": False,
            }
            for second in evidence.every(0, until)
        ],
        "dcgm",
    )  # fmt: skip


def holds(evidence):
    """Build; return GPU, owner, begin, end and method of what was held, in seconds."""
    evidence.store.build()
    assert check(evidence.store)["violations"].sum() == 0
    return evidence.store.read(
        """select gpu_uuid, job_id, (holds.start_ms - $1) / 1000, (holds.end_ms - $1) / 1000,
            method
        from intermediate.int_holds as holds
        inner join intermediate.int_job_runs using (job_run_key)
        order by all""",
        [START_MS],
    ).rows()


@pytest.fixture
def labelled(evidence):
    """Give a cluster that only telemetry reports: four GPUs, read for a thousand seconds."""
    gpus(evidence, "n", 4)
    for index in range(4):
        readings(evidence, f"n-{index}", 1000)
    return evidence


def test_a_pod_on_the_series_of_gpus_has_held_them(labelled):
    for index in (0, 1):
        label(labelled, f"n-{index}", "nlp/train-0", 100, 900)

    assert labelled.gpu_s() == {"busy_unclassified": 1600, "free_unknown": 2400}
    (run,) = labelled.store.read(
        "select job_id, job_name, team, state, gpus, is_inferred from intermediate.int_job_runs"
    ).rows()
    assert run == ("nlp/train-0", "train-0", "nlp", "UNKNOWN", 2, True)
    assert {row[4] for row in holds(labelled)} == {"label"}


def test_a_label_on_the_latest_reading_says_that_its_owner_goes_on(labelled):
    label(labelled, "n-0", "nlp/a", 100, 1000)
    label(labelled, "n-1", "nlp/b", 100, 900)

    assert holds(labelled) == [
        ("n-0", "nlp/a", 100, None, "label"), ("n-1", "nlp/b", 100, 900, "label"),
    ]  # fmt: skip
    runs = labelled.store.read("select job_id, state, outcome from intermediate.int_job_runs")
    assert sorted(runs.rows()) == [
        ("nlp/a", "RUNNING", "running"), ("nlp/b", "UNKNOWN", "limit"),
    ]  # fmt: skip


def test_an_exporter_that_has_gone_holds_nothing_for_ever(labelled):
    label(labelled, "n-0", "nlp/a", 100, 1000)
    before = holds(labelled)
    gpus(labelled, "m", 1)
    readings(labelled, "m-0", 2000)

    assert [row[3] for row in before] == [None]
    assert [row[3] for row in holds(labelled)] == [1000]


def test_two_sources_that_see_one_label_report_one_hold(labelled):
    label(labelled, "n-0", "nlp/a", 100, 600)
    label(labelled, "n-0", "nlp/a", 90, 900, source="prometheus")

    assert holds(labelled) == [("n-0", "nlp/a", 90, 900, "label")]


def test_a_label_that_is_away_for_minutes_has_not_gone(labelled):
    """As while a collector or an exporter restarts."""
    label(labelled, "n-0", "nlp/a", 100, 200)
    label(labelled, "n-0", "nlp/a", 700, 900)

    assert holds(labelled) == [("n-0", "nlp/a", 100, 900, "label")]


def test_a_label_that_comes_back_later_is_another_start(labelled):
    label(labelled, "n-0", "nlp/a", 0, 100)
    label(labelled, "n-0", "nlp/a", 800, 900)

    assert holds(labelled) == [
        ("n-0", "nlp/a", 0, 100, "label"), ("n-0", "nlp/a", 800, 900, "label"),
    ]  # fmt: skip
    assert labelled.store.read("from intermediate.int_job_runs").height == 2


def test_parts_of_an_owner_that_are_read_apart_do_not_wait_for_each_other(labelled):
    """Exporters are scraped at moments of their own: that is no gang wait."""
    label(labelled, "n-0", "nlp/a", 100, 900)
    label(labelled, "n-1", "nlp/a", 130, 900)

    assert set(labelled.gpu_s()) == {"busy_unclassified", "free_unknown"}


def test_job_ids_go_before_pods_on_a_gpu_that_has_both(labelled):
    label(labelled, "n-0", "nlp/a", 100, 900)
    label(labelled, "n-0", "4711", 100, 900, kind="hpc_job")

    assert [row[1] for row in holds(labelled)] == ["4711"]


def test_from_its_first_record_on_the_scheduler_alone_reports(labelled):
    label(labelled, "n-0", "nlp/a", 0, 900)
    labelled.job("77", 500, 700, ["n"], 1)

    assert holds(labelled) == [
        ("n-0", "77", 500, 700, "assumed"), ("n-0", "nlp/a", 0, 500, "label"),
    ]  # fmt: skip


def test_a_scheduler_that_reports_earlier_times_takes_them_back(labelled):
    label(labelled, "n-0", "nlp/a", 100, 900)
    before = holds(labelled)
    labelled.job("77", 50, 60, ["n"], 1)

    assert [row[1] for row in before] == ["nlp/a"]
    assert [row[1] for row in holds(labelled)] == ["77"]
    assert labelled.gpu_s() == {"busy_unclassified": 10, "free_unknown": 3990}


def test_polls_that_see_a_label_again_and_again_give_what_one_look_gives(new_evidence):
    polled, whole = new_evidence(), new_evidence()
    for one in (polled, whole):
        gpus(one, "n", 1)
        readings(one, "n-0", 1000)
    for second in range(200, 1000, 200):
        label(polled, "n-0", "nlp/a", 100, second)
        polled.store.build()
    label(whole, "n-0", "nlp/a", 100, 800)

    assert holds(polled) == holds(whole) == [("n-0", "nlp/a", 100, 800, "label")]
    sql = "from marts.ledger_segments order by all"
    assert polled.store.read(sql).equals(whole.store.read(sql))


def test_the_id_of_a_job_on_series_names_its_gpus(labelled):
    labelled.job("4711", 100, 900, ["n"], 2)
    for index in (1, 3):
        label(labelled, f"n-{index}", "4711", 130, 900, kind="hpc_job")

    assert holds(labelled) == [
        ("n-1", "4711", 100, 900, "hpc_job"), ("n-3", "4711", 100, 900, "hpc_job"),
    ]  # fmt: skip


def test_an_id_that_lingers_on_a_gpu_names_it_for_its_own_job_alone(labelled):
    labelled.job("1", 100, 500, ["n"], 1)
    labelled.job("2", 500, 900, ["n"], 1)
    label(labelled, "n-2", "1", 100, 800, kind="hpc_job")
    label(labelled, "n-3", "2", 510, 900, kind="hpc_job")

    assert [row[:4] for row in holds(labelled)] == [("n-2", "1", 100, 500), ("n-3", "2", 500, 900)]


def test_ids_on_series_go_before_what_the_scheduler_numbers(labelled):
    labelled.job("4711", 100, 900, ["n"], 1)
    label(labelled, "n-1", "4711", 130, 900, kind="hpc_job")
    labelled.load(
        "holds",
        [{"cluster": "c", "job_id_raw": "4711", "submit_at": labelled.at(100), "node": "n",
          "slurm_index": 0, "method": "scontrol"}],
    )  # fmt: skip

    assert [row[0] for row in holds(labelled)] == ["n-1"]


def test_a_job_whose_gpus_are_named_by_some_exporters_alone_keeps_their_number(labelled):
    """Two of its three GPUs bear the id: the third is another one of the node."""
    labelled.job("4711", 100, 900, ["n"], 3)
    for index in (2, 3):
        label(labelled, f"n-{index}", "4711", 130, 900, kind="hpc_job")

    assert [(row[0], row[4]) for row in holds(labelled)] == [
        ("n-0", "assumed"), ("n-2", "hpc_job"), ("n-3", "hpc_job"),
    ]  # fmt: skip


def test_an_id_that_comes_after_a_build_moves_the_hold(labelled):
    labelled.job("4711", 100, 900, ["n"], 1)
    before = holds(labelled)
    label(labelled, "n-2", "4711", 130, 300, kind="hpc_job")
    after = holds(labelled)
    label(labelled, "n-2", "4711", 130, 900, kind="hpc_job")

    assert [row[0] for row in before] == ["n-0"]
    assert [row[0] for row in after] == ["n-2"]
    assert holds(labelled) == after


def test_the_statement_says_what_is_known_from_labels_alone(labelled):
    label(labelled, "n-0", "nlp/a", 100, 900)
    labelled.store.build()

    rows = labelled.store.read("select reason, job_runs, gpu_ms from marts.statement_differences")
    assert rows.rows() == [("known from labels of telemetry alone", 1, -800_000)]
    kinds = labelled.store.read("select kind, n from marts.data_quality where n > 0")
    assert kinds.filter(pl.col("kind") == "job runs known from labels alone")["n"].to_list() == [1]
