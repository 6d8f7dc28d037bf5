"""The demo database is built from the sample data, once."""

import shutil

import pytest
from tests.app.command_line import run
from tests.tables import each

from goodput_app.cli import serve
from goodput_queries.errors import GoodputError
from goodput_synthetic import command, demo

EVENT = '{"ts": "2026-11-20T12:00:00Z", "run_id": "r1", "event": "run_start"}\n'


@pytest.fixture
def sample_data(tmp_path):
    folder = tmp_path / "sample_data"
    (folder / "lab").mkdir(parents=True)
    (folder / "lab" / "events.jsonl").write_text(EVENT)
    (folder / "demo.toml").write_text('[[ingest]]\npath = "lab"\ncluster = "lab"\n')
    return folder


def test_a_demo_is_built_once_and_again_when_its_data_changed(tmp_path, sample_data):
    first = demo.demo_database(tmp_path / "cache", sample_data=sample_data)
    inode = first.stat().st_ino
    assert demo.demo_database(tmp_path / "cache", sample_data=sample_data) == first
    assert first.stat().st_ino == inode

    (sample_data / "lab" / "more.txt").write_text("x")
    second = demo.demo_database(tmp_path / "cache", sample_data=sample_data)

    assert second != first
    assert list((tmp_path / "cache").iterdir()) == [second]


def test_every_module_of_the_generator_counts_for_the_demo(tmp_path, sample_data, monkeypatch):
    generator = tmp_path / "generator"
    module = generator / "written" / "events.py"
    module.parent.mkdir(parents=True)
    module.write_text("FIRST_PID = 1\n")
    monkeypatch.setattr(demo, "__file__", str(generator / "demo.py"))
    before = demo.digest(sample_data, gpus=64)

    module.write_text("FIRST_PID = 2\n")

    assert demo.digest(sample_data, gpus=64) != before


@each(
    ("cache", "sample_data", 0, "there is no such file or folder"),
    ("cache", "nowhere", 0, "the sample data cannot be read"),
    ("file/cache", "sample_data", 0, r"the demo cannot be stored there .*Name another --dir"),
    ("cache", "sample_data", 12, "--gpus 12: a fleet has whole nodes of 8 GPUs"),
)
def test_a_demo_unbuilt_says_why_and_leaves_nothing(tmp_path, sample_data, where, data, gpus, said):
    shutil.rmtree(sample_data / "lab")
    (tmp_path / "file").touch()

    with pytest.raises(GoodputError, match=said):
        demo.demo_database(tmp_path / where, sample_data=tmp_path / data, gpus=gpus)
    assert not list(tmp_path.glob("cache/*"))


def test_a_recipe_names_path_source_and_what_files_do_not_say_and_a_wrong_one_is_named(sample_data):
    recipe = sample_data / "demo.toml"
    recipe.write_text(
        '[[ingest]]\npath = "a.gz"\nsource = "nvml"\ncluster = "lab"\ntimezone = "Europe/Berlin"\n'
        "observed_at = 2026-11-20T12:00:00\n"
    )

    (step,) = demo.recipe(sample_data)

    assert (step.path, step.source) == (sample_data / "a.gz", "nvml")
    of = step.options
    assert (of.cluster, str(of.zone), of.observed_at is None) == ("lab", "Europe/Berlin", False)
    source, unknown = "[[ingest]]\nsource = 'nvml'", "[[ingest]]\npath = 'a'\nnope = 1"
    for text in ("", "ingest = 1", source, unknown, "["):
        recipe.write_text(text)
        with pytest.raises(GoodputError, match=r"demo\.toml: this is not a list of \[\[ingest\]\]"):
            demo.recipe(sample_data)


def test_a_demo_collects_nothing(here, configured, monkeypatch):
    """What a settings file in the same folder names belongs to another database."""
    configured('[[collect]]\nsource = "job-events"\nfolder = "."\n')
    served = []
    monkeypatch.setattr(command, "demo_database", lambda *_, **__: here / "demo.duckdb")
    monkeypatch.setattr(serve, "serve_at", lambda *given: served.append(given))

    assert run("demo").exit_code == 0
    assert [sources for _, _, _, sources in served] == [[]]
