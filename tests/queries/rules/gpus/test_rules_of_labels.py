"""Labels on series of GPUs: they name GPUs of known jobs, and holds without a scheduler."""

import polars as pl
from tests.queries.conftest import built_together

START_MS = 1_800_000_000_000


def gpus(cluster, node, count, start=0):
    """Load GPUs of a node, named <node>-0 and so on, by telemetry."""
    cluster.load(
        "gpus",
        [
            {
                "cluster": cluster.name, "node": node, "gpu_index": index,
                "gpu_uuid": f"{cluster.name}/{node}-{index}", "gpu_model": "h100",
                "valid_from_at": cluster.at(start),
            }
            for index in range(count)
        ],
        "dcgm",
    )  # fmt: skip


def label(cluster, gpu, owner, start, end, kind="pod", source="dcgm", **more):
    """Load that a GPU bore a label from its first reading with it to its last."""
    row = {
        "gpu_uuid": f"{cluster.name}/{gpu}", "gpu_instance": "", "kind": kind,
        "owner": owner, "container": "",
        "first_seen_at": cluster.at(start), "last_seen_at": cluster.at(end), **more,
    }  # fmt: skip
    cluster.load("gpu_owners", [row], source)


def readings(cluster, gpu, until, active=True):
    cluster.load(
        "gpu_samples",
        [
            {
                "gpu_uuid": f"{cluster.name}/{gpu}", "gpu_instance": "", "ts": cluster.at(second),
                "engine_active_ratio": 0.9 * active, "is_flagged": False,
            }
            for second in cluster.every(0, until)
        ],
        "dcgm",
    )  # fmt: skip


def holds(cluster):
    """Return GPU, owner, begin, end and method of what was held, in seconds."""
    cluster.build()
    assert cluster.violations() == 0
    return cluster.read(
        f"""select replace(gpu_uuid, '{cluster.name}/', ''), job_id,
            (holds.start_ms - {START_MS}) / 1000, (holds.end_ms - {START_MS}) / 1000, method
        from intermediate.int_holds as holds
        inner join intermediate.int_job_runs using (job_run_key)
        where holds.cluster = '{cluster.name}'
        order by all"""
    ).rows()


def job_runs(cluster, columns):
    sql = f"select {columns} from intermediate.int_job_runs where cluster = '{cluster.name}'"
    return cluster.read(sql).rows()


def labelled(cluster):
    """Load what telemetry alone reports: four GPUs, read for a thousand seconds."""
    gpus(cluster, "n", 4)
    for index in range(4):
        readings(cluster, f"n-{index}", 1000)


@built_together
def test_a_pod_on_the_series_of_gpus_has_held_them(cluster):
    labelled(cluster)
    for index in (0, 1):
        label(cluster, f"n-{index}", "nlp/train-0", 100, 900)
    yield
    assert cluster.gpu_s() == {"busy_unclassified": 1600, "free_unknown": 2400}
    (run,) = job_runs(cluster, "job_id, job_name, team, state, gpus, is_inferred")
    assert run == ("nlp/train-0", "train-0", "nlp", "UNKNOWN", 2, True)
    assert {row[4] for row in holds(cluster)} == {"label"}


@built_together
def test_a_label_on_the_latest_reading_says_that_its_owner_goes_on(cluster):
    labelled(cluster)
    label(cluster, "n-0", "nlp/a", 100, 1000)
    label(cluster, "n-1", "nlp/b", 100, 900)
    yield
    assert holds(cluster) == [
        ("n-0", "nlp/a", 100, None, "label"), ("n-1", "nlp/b", 100, 900, "label"),
    ]  # fmt: skip
    runs = job_runs(cluster, "job_id, state, outcome")
    assert sorted(runs) == [
        ("nlp/a", "RUNNING", "running"), ("nlp/b", "UNKNOWN", "limit"),
    ]  # fmt: skip


def test_an_exporter_that_has_gone_holds_nothing_for_ever(evidence):
    """It has gone while others, of whichever cluster, are read on."""
    labelled(evidence)
    label(evidence, "n-0", "nlp/a", 100, 1000)

    before = holds(evidence)
    gpus(evidence, "m", 1)
    readings(evidence, "m-0", 2000)

    assert [row[3] for row in before] == [None]
    assert [row[3] for row in holds(evidence)] == [1000]


@built_together
def test_two_sources_that_see_one_label_report_one_hold(cluster):
    labelled(cluster)
    label(cluster, "n-0", "nlp/a", 100, 600)
    label(cluster, "n-0", "nlp/a", 90, 900, source="prometheus")
    yield
    assert holds(cluster) == [("n-0", "nlp/a", 90, 900, "label")]


@built_together
def test_a_label_that_is_away_for_minutes_has_not_gone(cluster):
    """As while a collector or an exporter restarts."""
    labelled(cluster)
    label(cluster, "n-0", "nlp/a", 100, 200)
    label(cluster, "n-0", "nlp/a", 700, 900)
    yield
    assert holds(cluster) == [("n-0", "nlp/a", 100, 900, "label")]


@built_together
def test_a_label_that_comes_back_later_is_another_start(cluster):
    labelled(cluster)
    label(cluster, "n-0", "nlp/a", 0, 100)
    label(cluster, "n-0", "nlp/a", 800, 900)
    yield
    assert holds(cluster) == [
        ("n-0", "nlp/a", 0, 100, "label"), ("n-0", "nlp/a", 800, 900, "label"),
    ]  # fmt: skip
    assert len(job_runs(cluster, "job_run_key")) == 2


@built_together
def test_parts_of_an_owner_that_are_read_apart_do_not_wait_for_each_other(cluster):
    """Exporters are scraped at moments of their own: that is no gang wait."""
    labelled(cluster)
    label(cluster, "n-0", "nlp/a", 100, 900)
    label(cluster, "n-1", "nlp/a", 130, 900)
    yield
    assert set(cluster.gpu_s()) == {"busy_unclassified", "free_unknown"}


@built_together
def test_job_ids_go_before_pods_on_a_gpu_that_has_both(cluster):
    labelled(cluster)
    label(cluster, "n-0", "nlp/a", 100, 900)
    label(cluster, "n-0", "4711", 100, 900, kind="hpc_job")
    yield
    assert [row[1] for row in holds(cluster)] == ["4711"]


@built_together
def test_from_its_first_record_on_the_scheduler_alone_reports(cluster):
    labelled(cluster)
    label(cluster, "n-0", "nlp/a", 0, 900)
    cluster.job("77", 500, 700, ["n"], 1)
    yield
    assert holds(cluster) == [
        ("n-0", "77", 500, 700, "assumed"), ("n-0", "nlp/a", 0, 500, "label"),
    ]  # fmt: skip


@built_together(builds=2)
def test_a_scheduler_that_reports_earlier_times_takes_them_back(cluster):
    labelled(cluster)
    label(cluster, "n-0", "nlp/a", 100, 900)
    yield
    before = holds(cluster)
    cluster.job("77", 50, 60, ["n"], 1)

    assert [row[1] for row in before] == ["nlp/a"]
    yield
    assert [row[1] for row in holds(cluster)] == ["77"]
    assert cluster.gpu_s() == {"busy_unclassified": 10, "free_unknown": 3990}


def test_polls_that_see_a_label_again_and_again_give_what_one_look_gives(new_evidence):
    polled, whole = new_evidence(), new_evidence()
    for one in (polled, whole):
        gpus(one, "n", 1)
        readings(one, "n-0", 1000)
    for second in (200, 500, 800):
        label(polled, "n-0", "nlp/a", 100, second)
        polled.store.build()
    label(whole, "n-0", "nlp/a", 100, 800)

    assert holds(polled) == holds(whole) == [("n-0", "nlp/a", 100, 800, "label")]
    sql = "from marts.ledger_segments order by all"
    assert polled.store.read(sql).equals(whole.store.read(sql))


@built_together
def test_the_id_of_a_job_on_series_names_its_gpus(cluster):
    labelled(cluster)
    cluster.job("4711", 100, 900, ["n"], 2)
    for index in (1, 3):
        label(cluster, f"n-{index}", "4711", 130, 900, kind="hpc_job")
    yield
    assert holds(cluster) == [
        ("n-1", "4711", 100, 900, "hpc_job"), ("n-3", "4711", 100, 900, "hpc_job"),
    ]  # fmt: skip


@built_together
def test_an_id_that_lingers_on_a_gpu_names_it_for_its_own_job_alone(cluster):
    labelled(cluster)
    cluster.job("1", 100, 500, ["n"], 1)
    cluster.job("2", 500, 900, ["n"], 1)
    label(cluster, "n-2", "1", 100, 800, kind="hpc_job")
    label(cluster, "n-3", "2", 510, 900, kind="hpc_job")
    yield
    assert [row[:4] for row in holds(cluster)] == [("n-2", "1", 100, 500), ("n-3", "2", 500, 900)]


@built_together
def test_ids_on_series_go_before_what_the_scheduler_numbers(cluster):
    labelled(cluster)
    cluster.job("4711", 100, 900, ["n"], 1)
    label(cluster, "n-1", "4711", 130, 900, kind="hpc_job")
    cluster.load(
        "holds",
        [{"cluster": cluster.name, "job_id_raw": "4711", "submit_at": cluster.at(100), "node": "n",
          "slurm_index": 0, "method": "scontrol"}],
    )  # fmt: skip
    yield
    assert [row[0] for row in holds(cluster)] == ["n-1"]


@built_together
def test_a_job_whose_gpus_are_named_by_some_exporters_alone_keeps_their_number(cluster):
    """Two of its three GPUs bear the id: the third is another one of the node."""
    labelled(cluster)
    cluster.job("4711", 100, 900, ["n"], 3)
    for index in (2, 3):
        label(cluster, f"n-{index}", "4711", 130, 900, kind="hpc_job")
    yield
    assert [(row[0], row[4]) for row in holds(cluster)] == [
        ("n-0", "assumed"), ("n-2", "hpc_job"), ("n-3", "hpc_job"),
    ]  # fmt: skip


@built_together(builds=3)
def test_an_id_that_comes_after_a_build_moves_the_hold(cluster):
    labelled(cluster)
    cluster.job("4711", 100, 900, ["n"], 1)
    yield
    before = holds(cluster)
    label(cluster, "n-2", "4711", 130, 300, kind="hpc_job")
    yield
    after = holds(cluster)
    label(cluster, "n-2", "4711", 130, 900, kind="hpc_job")

    assert [row[0] for row in before] == ["n-0"]
    assert [row[0] for row in after] == ["n-2"]
    yield
    assert holds(cluster) == after


def test_the_statement_says_what_is_known_from_labels_alone(evidence):
    labelled(evidence)
    label(evidence, "n-0", "nlp/a", 100, 900)
    evidence.store.build()

    rows = evidence.store.read("select reason, job_runs, gpu_ms from marts.statement_differences")
    assert rows.rows() == [("known from labels of telemetry alone", 1, -800_000)]
    kinds = evidence.store.read("select kind, n from marts.data_quality where n > 0")
    assert kinds.filter(pl.col("kind") == "job runs known from labels alone")["n"].to_list() == [1]
