"""What one account is shown: its own rows as billed, and not a byte of anybody else."""

import csv
import io
import re
from datetime import date
from decimal import Decimal

import polars as pl
import pypdfium2
import pytest
from msgspec.structs import replace as change
from tests.queries.conftest import built_file, steps, store_of

from goodput_billing.render import files
from goodput_billing.statement.one_account import each_account, file_name, of_account
from goodput_billing.statement.settings import StatementSettings
from goodput_billing.statement.statement import statement
from goodput_queries.errors import QueryError

HOUR_S = 3_600
WHEN = date(2027, 1, 15)
# words that only the others have: account, user, job, run, partition, QOS, model; node, reservation
IN_THE_WHOLE = ("rivals", "mallory", "7700123", "secretjob", "dungeon", "vipqos", "b200")
HIDDEN = ("hiddennode", "secretres", "c/7700")
CLOSED = StatementSettings(idle_policy="proportional", credit_infra_failures=True, lateness_h=6)


@built_file
def built_fleet(evidence):
    """Load two accounts that waste, fail, have budgets, quotas and a reservation."""
    evidence.node("a", 8)
    evidence.node("hiddennode", 4, model="b200", watched=24 * HOUR_S)
    others = {"account": "rivals", "user_name": "mallory", "job_name": "secretjob",
              "partition": "dungeon", "qos": "vipqos"}  # fmt: skip
    for job, node, gpus, state, about in (
        ("11", "a", 2, "COMPLETED", {"account": "ours", "user_name": "ann"}),
        ("7700", "hiddennode", 4, "NODE_FAIL", others),
        ("7700123", "a", 3, "FAILED", others),
    ):
        evidence.job(job, 0, 5 * HOUR_S + 17, [node], gpus, state, **about)
        ran = steps(1, 80, 100, 10)
        evidence.events(job, [{"event": "job.start", "t": 50}, *ran], cluster="c", host=node)
    evidence.add("rates", price_per_gpu_h=Decimal("2.37"), cluster=None)
    evidence.load("budgets",
                  [{"account": name, "cost_per_month": Decimal(cost), "quota_gpus": gpus}
                   for name, cost, gpus in (("ours", "1234.00", Decimal(2)),
                                            ("rivals", "98765.43", Decimal(5)),
                                            ("resting", "5", None))])  # fmt: skip
    evidence.add("reservations", name="secretres", owner="rivals", nodes=["hiddennode"],
                 start_at=6 * HOUR_S, end_at=9 * HOUR_S, flags="")  # fmt: skip


store = store_of("built_fleet")  # for tests that close no day


@pytest.fixture(scope="module")
def statements(store):
    """Return the whole statement and the account's own of the open day, by policy."""
    found = {}
    for idle in ("none", "proportional", "by_quota"):
        whole = statement(store, WHEN, change(CLOSED, idle_policy=idle, lateness_h=10_000))
        found[idle] = whole, of_account(store, whole, "ours")
    return found


@pytest.fixture(scope="module")
def own_files(statements, tmp_path_factory):
    """Return what the files of the account's own statement hold, by policy and name."""
    folder = tmp_path_factory.mktemp
    return {idle: texts(own, folder(idle)) for idle, (_, own) in statements.items()}


def texts(made, folder):
    """Return all that the files hold, as text, by the name of the file."""
    found = {}
    written = files.write(made, folder / "1.2", files.FORMATS)
    for path in [*written, *files.write(made, folder / "1.3", ["focus"], "1.3")]:
        content = path.read_bytes().decode("latin-1")
        if path.suffix == ".parquet":
            content += pl.read_parquet(path).write_csv() + str(pl.read_parquet_metadata(path))
        if path.suffix == ".pdf":
            with pypdfium2.PdfDocument(path) as document:
                content += "".join(p.get_textpage().get_text_bounded() for p in document)
                content += str(document.get_metadata_dict())
        found[f"{path.parent.name}/{path.name}"] = content
    return found


def test_no_name_of_another_account_is_in_a_file_of_the_own(statements, own_files, tmp_path):
    reported = texts(statements["none"][0], tmp_path).values()
    assert [word for word in IN_THE_WHOLE if not any(word in text for text in reported)] == []

    for idle, of_policy in own_files.items():
        for name, text in of_policy.items():
            found = [word for word in (*IN_THE_WHOLE, *HIDDEN) if word in text.lower()]
            assert found == [], (idle, name)


def test_no_amount_of_others_or_of_all_is_in_any_file_of_the_own_statement(statements, own_files):
    for idle, (whole, own) in statements.items():
        of_all, mine = (
            amounts([*made.accounts.to_dicts(), *made.rows.to_dicts(), *made.budgets.to_dicts()])
            for made in (whole, own)
        )
        searched = (of_all | {whole.total_cost}) - mine
        assert len(searched) > 3

        for name, text in own_files[idle].items():
            bare = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text)  # without separators of thousands
            found = [cost for cost in searched if re.search(rf"(?<![\d.,]){cost}(?!\d)", bare)]
            assert found == [], (idle, name)


def amounts(rows):
    """Return the amounts in rows that are large enough to differ from other numbers."""
    found = {abs(row[name]) for row in rows for name in row if name.endswith("_cost") and row[name]}
    return {cost for cost in found if cost > 10}


def test_ratios_of_shared_idle_time_are_of_the_own_share(statements, tmp_path):
    """A part of all, with the own share in money, would reveal what all others carry."""
    for idle, (_, own) in statements.items():
        (path,) = files.write(own, tmp_path / idle, ["focus"], "1.3")

        rows = list(csv.DictReader(io.StringIO(path.read_text())))
        ratios = [float(found) for row in rows for found in re.findall(
            r'"AllocatedRatio":([0-9.e-]+)', row["AllocatedMethodDetails"]
        )]  # fmt: skip
        assert bool(ratios) == (idle != "none")
        assert not ratios or sum(ratios) == pytest.approx(1)


def test_its_rows_are_those_of_the_whole_statement_and_all_accounts_make_it_up(store, statements):
    """What a cluster came to is left out."""
    for whole, own in statements.values():
        assert own.balance.is_empty()
        assert own.differences.is_empty()
        assert set(own.accounts["account"]) == {"ours"}
        assert {account for _, account in own.policy.quotas} <= {"ours"}
        parts = list(each_account(store, whole))

        assert [part.account for part in parts] == ["ours", "rivals"]
        billed = whole.rows.filter(pl.col("line").is_in(["usage", "credit", "idle_share"]))
        assert pl.concat(p.rows for p in parts).sort(pl.all()).equals(billed.sort(pl.all()))
        of_accounts = whole.accounts.filter("is_account")
        assert sum(p.total_cost for p in parts) == sum(of_accounts["total_cost"])
        assert parts[0].rows.equals(own.rows)
        assert [set(p.losses["account"]) for p in parts] == [{"ours"}, {"rivals"}]


def test_its_corrections_are_its_own(new_evidence, built_fleet, tmp_path):
    fleet = new_evidence(copy_of=built_fleet)
    statement(fleet.store, WHEN, change(CLOSED, idle_policy="none"))
    fleet.job("7701", 10 * HOUR_S, 12 * HOUR_S, ["a"], 1, account="rivals")
    fleet.store.build()
    whole = statement(fleet.store, WHEN, CLOSED)
    assert [b.number for b in whole.bookings] == [0, 1]

    ours, rivals = each_account(fleet.store, whole)

    assert [b.number for b in ours.bookings] == [0]
    assert [b.number for b in rivals.bookings] == [0, 1]
    assert sum(b.billed_cents for b in rivals.bookings) == rivals.total_cost * 100
    assert not {b.digest for b in ours.bookings} & {b.digest for b in whole.bookings}
    for name, text in texts(ours, tmp_path).items():
        assert "c/7701" not in text, name
        assert "orrection 1" not in text, name


def test_an_account_without_a_row_of_the_day_is_marked_unless_nobody_knows_it(store, statements):
    whole, _ = statements["none"]
    assert of_account(store, whole, "resting").total_cost == 0
    with pytest.raises(QueryError, match="no account 'unheard of'"):
        of_account(store, whole, "unheard of")


def test_each_account_has_a_harmless_file_name_of_its_own():
    names = ["nlp", "NLP", "nlp ", "n/lp", "n lp", "n-lp", "é", "è", "", "x" * 90, "x" * 91]
    names += ["../../etc/passwd", ".", "..", "CON ", "\x00", *(file_name(name) for name in names)]
    made = {file_name(name) for name in names}

    assert len(made) == len(set(names))
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9._-]*", name) and ".." not in name for name in made)
    assert file_name("nlp") == "nlp"
