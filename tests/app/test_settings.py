"""`goodput.toml`: what a site writes once."""

from pathlib import Path

import pytest
from msgspec.structs import fields
from tests.app.conftest import settings_of
from tests.tables import each, refuses

import goodput_app
from goodput_app.settings import IngestSettings, ServeSettings, Settings, UiSettings, read, settings
from goodput_queries.errors import GoodputError
from goodput_queries.objectives.serving import ServingObjective

KNOWN = (
    "db, ingest, serve, ui, retention, lake, metrics, replay, query, database, statement, report, "
    "collect, evaluation_counts, objectives, serving, notify, access, plugins, receive, otlp"
)
EXAMPLE = Path(goodput_app.__file__).with_name("goodput.example.toml")


def test_without_a_file_the_defaults_hold_and_a_named_one_must_be_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert settings() == Settings()

    monkeypatch.setenv("GOODPUT_CONFIG", str(tmp_path / "nope.toml"))
    settings.cache_clear()
    with pytest.raises(GoodputError, match="the settings cannot be read"):
        settings()


def test_a_file_changes_what_it_names():
    text = 'db = "a.duckdb"\ningest.cluster = "lab"\nserve.port = 9000\nui.range = "now-7d"\n'
    assert settings_of(text) == Settings(
        "a.duckdb", IngestSettings("lab"), ServeSettings(port=9000), UiSettings("now-7d")
    )


@each(
    ("colour = 1", f"there is no setting 'colour'; known: {KNOWN}."),
    ("db = 1", "'db' is 1, expected a text in quotes."),
    ("[serve]\nport = '1'", "'serve.port' is '1', expected a whole number."),
    ("[database]\nmemory_mib = 100", "'database.memory_mib' is 100, expected 256 to 16777216."),
    ("[serve]\nport = true", "'serve.port' is True, expected a whole number."),
    ("[collect]", "'collect' is a list; write each source as [[collect]]."),
    ("objectives = 1", "'objectives' is a list; write each objective as [[objectives]]."),
    ("[[objectives]]", "an [[objectives]] table needs 'target', such as 0.6."),
    ("[[objectives]]\ntarget = '1'", "'objectives.target' is not a number."),
    ("[[objectives]]\ntarget = 0.5\nteam = 1", "'objectives.team' is not a text in quotes."),
    ("[[ingest]]", "'ingest' is a section; write it as [ingest]."),
    ("[report.webhook]\nlink = 1",
     "there is no setting 'report.webhook.link'; known: report.webhook.url, "
     "report.webhook.url_env, report.webhook.url_file, report.webhook.token_env, "
     "report.webhook.token_file, report.webhook.secret_env, report.webhook.secret_file, "
     "report.webhook.ca_file, report.webhook.timeout_s."),
)  # fmt: skip
def test_a_wrong_key_is_named_with_its_file(text, sentence):
    with pytest.raises(GoodputError) as caught:
        settings_of(text)
    assert str(caught.value).endswith(f"/goodput.toml: {sentence}")


OBJECTIVE, OF_SERVING = "[[objectives]]\ntarget = ", "[[serving.objectives]]\n"

test_a_value_that_makes_no_sense_is_refused = refuses(
    GoodputError,
    settings_of,
    ("db =", "this is not TOML"),
    (f"{OBJECTIVE}60", "'objectives.target' is 60.0, expected a ratio between 0 and 1"),
    (f"{OBJECTIVE}0.5\nwindow_days = 0",
     "'objectives.window_days' is 0, expected 1 to 90 days"),
    (f"{OBJECTIVE}0.5\nteam = ''", "'objectives.team' has 0 characters, expected 1 to 80"),
    (f"{OBJECTIVE}0.5\n{OBJECTIVE}0.6", "two objectives are named 'fleet'"),
    (OF_SERVING, "needs 'ttft_s', 'inter_token_s' or 'e2e_s'"),
    (f"{OF_SERVING}ttft_s = 0.0",
     "'serving.objectives.ttft_s' is 0.0, expected seconds above 0"),
    (f"{OF_SERVING}slo = 1", "there is no setting 'serving.objectives.slo'"),
    (f"{OF_SERVING}model = ''\ne2e_s = 1", "'serving.objectives.model' has 0 characters"),
    (f"{OF_SERVING}e2e_s = 1\ntarget = 99", "'serving.objectives.target' is 99.0, expected a"),
    (f"{OF_SERVING}e2e_s = 1\n{OF_SERVING}ttft_s = 1", "are of model '*'; the first alone"),
    ('statement.idle_policy = "fair"', "expected one of none, proportional, uniform, by_quota"),
    ('statement.zone = "Mars/Base"', "expected a zone like Europe/Berlin"),
    ('statement.day_starts_at = "5 pm"', "expected like 17:00"),
    ('statement.day_starts_at = "17:00+02:00"', "expected like 17:00"),
    ('statement.currency = "EURO"', "expected an ISO 4217 code like EUR"),
    ('statement.organisation = " "', "'statement.organisation' is empty"),
    ("statement.lateness_h = -1", "is below 0"),
    ("statement.showback = 1", "expected true or false"),
    ("metrics.label_values = 0", "'metrics.label_values' is 0, expected 1 to"),
    ("metrics.settle_h = 999", "'metrics.settle_h' is 999, expected 1 to"),
    *((f'ingest.earliest = "{day}"', "a day from 2000-01-01 on")
      for day in ("yesterday", "1970-01-01", "")),
)  # fmt: skip


def test_the_example_shows_every_setting():
    example = read(EXAMPLE)

    for part, default in (
        (example.ingest, IngestSettings), (example.serve, ServeSettings), (example.ui, UiSettings),
    ):  # fmt: skip
        assert all(getattr(part, f.name) is not None for f in fields(default))
        assert all(f"\n{f.name} = " in EXAMPLE.read_text() for f in fields(default))
    assert example.serving.objectives == (
        ServingObjective("llama-*", ttft_s=0.5, inter_token_s=0.05, target=0.99),
    )
    assert settings_of("").serving.objectives is None, "those of the database stay"
    assert settings_of("[serving]\nobjectives = []").serving.objectives == ()
