"""Statements of a real database, delivered by the command and by the server's schedule."""

import shutil
import signal
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from msgspec.structs import replace as change
from tests.app.billing.conftest import past_statement
from tests.app.command_line import failing, run
from tests.app.cost_page import SACCT, cost_file
from tests.app.served import serving
from tests.tables import each
from tests.until import until

from goodput_app.settings import settings
from goodput_billing.delivery.archive import Delivery, keep, past_statements
from goodput_billing.delivery.deliver import deliver, delivery_lock
from goodput_billing.delivery.schedule import AGAIN_S, Timetable, delivering
from goodput_billing.statement.statement import statement
from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions

TODAY = datetime.now(UTC).date()
DAY = TODAY - timedelta(2)  # closed
YESTERDAY = TODAY - timedelta(1)  # open: evidence ends at 14 h
SECRET = "geheim-t0ken"  # noqa: S105 -- of no use


def job(when, start=8, hours=6, account="nlp"):
    """Return a line of sacct: a job with four GPUs."""
    begin, end = (f"{when}T{hour:02}:00:00" for hour in (start, start + hours))
    number = f"{when.day}{start:02}"
    return (
        f"c|{number}|{number}|ann|{account}|gpu|COMPLETED|{begin}|{begin}|{begin}|{end}|1|a|"
        "gres/gpu=4|train\n"
    )


def read_in(store, path, *jobs):
    path.write_text(accounting(*jobs))
    ingest(store, "slurm", [path], ReadOptions(zone=ZoneInfo("UTC")))
    store.build()


@pytest.fixture(scope="module")
def made(filled):
    """Give a database with a job on each of two days, the first of them closed."""

    def close(store):
        assert statement(store, DAY, settings().statement).is_closed

    jobs = accounting(job(DAY), job(YESTERDAY))
    open_days = cost_file(filled, {"rates": "price_per_gpu_h\n2\n"}, jobs)
    return filled("closed-day", close, copy_of=open_days)


@pytest.fixture
def days(made, own_store):
    """Give a copy of that database, open."""
    return own_store(copy_of=made)


def accounting(*jobs):
    return "".join([SACCT.partition("\n")[0], "\n", *jobs])


@pytest.fixture
def here(made, tmp_path, monkeypatch, post, hook):
    """Work in a folder with a copy of that database, and settings with mail and webhook."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOOK_TOKEN", SECRET)
    shutil.copyfile(made, tmp_path / "goodput.duckdb")
    (tmp_path / "goodput.toml").write_text(
        f"""[report]
        formats = ["csv"]
        [report.mail]
        host = "127.0.0.1"
        port = {post.port}
        sender = "goodput@lab.example"
        to = ["finance@lab.example"]
        security = "none"
        attach = ["csv"]
        [report.webhook]
        url = "{hook.url}/secret-path"
        token_env = "HOOK_TOKEN"
        """
    )
    return tmp_path


def report(*arguments):
    return run("report", *arguments)


def test_the_command_hands_out_what_is_due_and_fails_until_all_have_it(here, post, hook):
    hook.answers += [(400, {})]

    first, second = (report("--deliver") for _ in range(2))

    assert first.exit_code == 1
    assert first.stdout == f"goodput-statements/statement-{DAY}.csv\n"
    assert f"{DAY}: 1 files in goodput-statements, mail to 1." in first.stderr
    assert f"{YESTERDAY}: not delivered. Open: figures may still change." in first.stderr
    assert f"{DAY}: webhook: {hook.url} answered 400" in first.stderr
    assert second.exit_code == 0, second.stderr
    assert f"{DAY}: webhook." in second.stderr
    assert (len(post.mails), len(hook.posts)) == (1, 2)
    files = [path.read_text() for path in (here / "goodput-statements").iterdir()]
    for text in (first.output, second.output, *files):
        assert SECRET not in text
        assert "secret-path" not in text


@each(
    (["--out", "x"], 2, "--out is not for --deliver, which does as [report] says."),
    (["--focus-version", "1.3"], 2, "--focus-version is not for --deliver"),
    (["--close"], 2, "--close with --deliver needs the --date"),
    (["--date", "2020-01-01"], 1, "there is no evidence of 2020-01-01 (UTC)"),
    (["--db", "no.duckdb"], 1, "there is no such database"),
)
@pytest.mark.usefixtures("here")
def test_what_cannot_be_delivered_is_reported_in_a_sentence(arguments, code, message):
    assert message in failing("report", "--deliver", *arguments, code=code)


def test_a_second_process_does_not_hand_out_meanwhile(here, post):
    with delivery_lock(here / "goodput-statements"):
        said = failing("report", "--deliver")
    assert "delivers these statements now. Try again after it." in said
    assert post.mails == []


def test_late_evidence_makes_a_correction_that_goes_out(days, plan, post, tmp_path):
    deliver(days, DAY, plan)
    read_in(days, tmp_path / "late.txt", job(DAY, start=16, hours=2, account="cv"))

    deliver(days, DAY, plan)

    assert [one["Subject"].partition(": ")[2] for one in post.mails] == [
        "$128.00, closed", "$128.00, closed, 1 correction",
    ]  # fmt: skip
    (entry,) = past_statements(plan.folder)
    assert (entry.corrections, str(entry.accounts_cost)) == (1, "64.00")  # of the idle 80


def at_seven(plan, **more):
    return replace(plan, report=change(plan.report, at="07:00", **more))


def looking(store, plan):
    return Timetable(store, plan, plan.report.time())


def test_it_looks_again_soon_while_a_day_is_open_else_at_its_time(store, plan, clock):
    timetable = looking(store, at_seven(plan))
    assert timetable.look() == AGAIN_S
    clock.at = clock.at.replace(day=21, hour=6, minute=59, second=30)
    assert timetable.look() == 30.0

    clock.at = at = datetime(2026, 11, 20, 15, tzinfo=UTC)
    mailed = Delivery("mail", "0-a", at, 1, delivered_at=at)
    keep(plan.folder, past_statement(date(2026, 11, 19), deliveries=(mailed,)))
    assert looking(store, at_seven(plan)).look() == 16 * 3600
    assert clock.at == at


def test_a_server_that_was_down_at_the_time_hands_out_when_it_starts(days, plan, post, clock):
    clock.at = datetime.combine(YESTERDAY, datetime.min.time(), UTC) + timedelta(hours=15)
    timetable = looking(days, at_seven(plan))

    wait_s = timetable.look()
    assert wait_s == timetable.look() == 16 * 3600
    assert [one["Subject"].partition(": ")[2] for one in post.mails] == ["$128.00, closed"]


def test_what_goes_wrong_is_logged_once(store, plan, caplog):
    plan.folder.write_text("a file")
    timetable = looking(store, at_seven(plan))

    assert [timetable.look() for _ in range(3)] == [AGAIN_S] * 3
    (record,) = caplog.records
    assert "the folder of statements cannot be made" in record.getMessage()


def test_without_a_time_of_day_nothing_is_delivered(store, plan, caplog):
    with delivering(store, None), delivering(store, plan):
        pass
    assert not plan.folder.exists()
    assert caplog.records == []


@pytest.mark.machine
def test_goodput_serve_delivers_and_a_command_meanwhile_finds_nothing_due(here, post):
    text = (here / "goodput.toml").read_text()
    (here / "goodput.toml").write_text(text.replace("[report]", '[report]\nat = "00:00"', 1))
    busy = "delivers these statements now"  # another process is not waited for

    with serving(here / "goodput.duckdb") as server:
        assert post.arrived.wait(60)
        until(lambda: busy not in report("--deliver").output, "no other delivers", every_s=0.5)
        result = report("--deliver", "--date", str(DAY))
        assert server.end(signal.SIGTERM) == 0

    assert result.exit_code == 0, result.output
    assert f"{DAY}: no change." in result.stderr
    assert len(post.mails) == 1
