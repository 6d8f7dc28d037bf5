"""`goodput doctor` on what a database holds: nothing, rejected rows only, no files of the site."""

from zoneinfo import ZoneInfo

from tests.ingest.job_log_lines import ITERATION

from goodput_app.cli.doctor import doctor
from goodput_app.cli.doctor.site_files import site_findings
from goodput_app.settings import settings
from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions

STEP = ITERATION.format(second=11, step=1, ms=1000.0)


def loaded(store, source, file, text):
    file.write_text(text)
    ingest(store, source, [file], ReadOptions())


def found(store):
    """Return status and finding of each source."""
    return {what: (status, text) for what, status, text, _ in doctor._sources(store, "one.duckdb")}


def test_an_empty_database_is_a_problem_where_nothing_is_polled(store, here):
    assert found(store)["sources"] == ("problem", "nothing was ingested")
    assert list(site_findings("one.duckdb", store)) == []

    (here / "goodput.toml").write_text('[[collect]]\nsource = "slurm"\n')
    settings.cache_clear()
    assert found(store)["sources"][0] == "missing"


def test_a_source_of_which_every_row_was_rejected_is_a_problem(store, tmp_path):
    loaded(store, "rates", tmp_path / "a.csv", "price_per_gpu_h\ndear\n")
    assert found(store)["rejects rates"] == ("problem", "1 row rejected, none was left")

    loaded(store, "rates", tmp_path / "b.csv", "price_per_gpu_h\n3\n")
    assert found(store)["rejects rates"] == ("rejected", "1 row rejected")


def test_a_log_with_lines_that_almost_matched_is_named_with_the_first_of_them(store, tmp_path):
    text = "successfully saved checkpoint of iteration 7 to /ckpt\n"
    log = tmp_path / "train.out"
    log.write_text(STEP + 2 * text)
    ingest(store, "job-log", [log], ReadOptions(zone=ZoneInfo("UTC")))

    status, said = found(store)["lines job-log"]

    assert status == "rejected"
    expected = f"{log}: 2 lines almost read; line 2 ({text.strip()}): the line looks"
    assert said.startswith(expected)


def test_facts_that_no_file_gave_are_named_with_the_lines_that_add_them(store, tmp_path):
    loaded(store, "rates", tmp_path / "rates.csv", "price_per_gpu_h\n3\n")
    missing = {what: line for what, _, _, line in site_findings("one.duckdb", store)}
    assert set(missing) == {"electricity prices", "node states"}

    loaded(store, "tariffs", tmp_path / "tariffs.csv", "price_per_kwh\n0.20\n")
    assert [what for what, *_ in site_findings("one.duckdb", store)] == ["node states"]


def test_gpu_metrics_of_no_catalogue_are_named_with_the_row_that_adds_one(store, tmp_path):
    series = 'DCGM_FI_DEV_{name}{{UUID="GPU-1",Hostname="n1"}} 5 1787234400000\n'
    loaded(store, "rates", tmp_path / "rates.csv", "price_per_gpu_h\n3\n")
    scrape = "".join(series.format(name=name) for name in ("GPU_UTIL", "ACME_FAN"))
    loaded(store, "dcgm", tmp_path / "scrape.prom", scrape)

    (said,) = (row for row in site_findings("one.duckdb", store) if row[0] == "GPU metrics")

    assert said[2].endswith("no page draws them: DCGM_FI_DEV_ACME_FAN")
    assert said[3].endswith("DCGM_FI_DEV_ACME_FAN,DCGM,gpu_busy_ratio,0.01,gauge,0,1,none")
