"""Closed days: what was charged is kept, and only corrections are added to it.

A day closes when the evidence of its clusters reaches the configured lateness beyond its end. Its
rows, prices, tariffs and policy are then written once. A later report computes the day again from
today's evidence at the prices it was charged with; what differs becomes rows of a correction, and
where nothing differs the day is proven unchanged.
"""

import json
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

import polars as pl

from goodput_billing.statement import adjustments
from goodput_billing.statement.amounts import credit_rules, currency, rows
from goodput_billing.statement.amounts.charges import Key, Policy, charges
from goodput_billing.statement.amounts.summary import CoveredDay, Totals
from goodput_billing.statement.days import Day
from goodput_queries.database import Store
from goodput_queries.errors import StoreError
from goodput_queries.evidence.batch import Batch
from goodput_queries.scope import utc_at

SOURCE = "statement"
INSTANT = pl.Datetime("us")
COST_PLACES = 8  # amounts are kept to 1e-12: a smaller difference is how they were divided
HOUR_MS = 3_600_000
_KIND = ("cluster", "gpu_model", "mig_profile", "partition", "qos")
_BILLED = {
    **{name: name.replace("_cost", "_billed_cost") for name in rows.AMOUNTS},
    "total_cost": "billed_cost",
}


@dataclass(frozen=True)
class Booking:
    """One statement of a closed day (number 0) or a correction to it; `rows` in cents."""

    number: int
    evidence_ms: int
    digest: str
    policy: Policy
    rows: pl.DataFrame
    exact: pl.DataFrame

    @property
    def billed_cents(self) -> int:
        """Return what it bills."""
        return _cents(self.rows)

    @property
    def own_cents(self) -> int:
        """Return what it bills for the day itself, without credits for other days."""
        return _cents(adjustments.without_credits(self.rows))


def _cents(frame: pl.DataFrame) -> int:
    return int(sum(frame["total_cost"].drop_nulls(), Decimal(0)) * 100)


@dataclass(frozen=True)
class Evidence:
    """From when to when there is evidence of each cluster, in epoch ms."""

    first_ms: dict[str, int] = field(default_factory=dict)
    as_of_ms: dict[str, int] = field(default_factory=dict)

    def reach(self, clusters: set[str]) -> int | None:
        """Return how far the evidence of all of these reaches; None where nothing is known."""
        return min((self.as_of_ms[c] for c in clusters if c in self.as_of_ms), default=None)

    def covered_ms(self, day: Day) -> dict[str, int]:
        """Return the milliseconds of a day of which there is evidence, of each cluster with any."""
        known = {
            cluster: min(as_of_ms, day.to_ms) - max(self.first_ms[cluster], day.from_ms)
            for cluster, as_of_ms in self.as_of_ms.items()
        }
        return {cluster: ms for cluster, ms in known.items() if ms > 0}

    def part_of(self, day: Day) -> Fraction:
        """Return the part of a day of which there is evidence, of the cluster with the most."""
        known = self.covered_ms(day).values()
        return Fraction(max(known, default=0), day.to_ms - day.from_ms)

    def of_day(self, day: Day, totals: Totals) -> CoveredDay:
        """Return what a day came to with its coverage: whole where its evidence was dropped."""
        known = self.covered_ms(day)
        whole = {cluster: day.to_ms - day.from_ms for cluster, _ in totals if cluster not in known}
        return CoveredDay(totals, known | whole)


def evidence(store: Store) -> Evidence:
    """Return from when to when there is evidence of each cluster."""
    rows = store.read("select cluster, to_ms(first_at), to_ms(as_of_at) from marts.clusters").rows()
    return Evidence({row[0]: row[1] for row in rows}, {row[0]: row[2] for row in rows})


def quotas(store: Store, day: Day) -> dict[tuple[str, str], Decimal]:
    """Return the GPUs kept for accounts on a day, by (cluster, account)."""
    found = store.read(
        "select cluster, account, quota_gpus from marts.statement_budgets "
        "where quota_gpus is not null order by all",
        scope=day.scope,
    )
    return {(cluster, account): gpus for cluster, account, gpus in found.rows()}


def computed(store: Store, day: Day, policy: Policy) -> pl.DataFrame:
    """Return the exact rows of a day from what is known now."""
    lines = store.read("select * from marts.statement_lines", scope=day.scope, is_kept=True)
    return rows.frame_of(charges(lines.iter_rows(named=True), policy))


def bookings(store: Store, day: Day) -> list[Booking]:
    """Return what was charged for a closed day, corrections last; empty while it is open.

    Raises StoreError where the rows are not those that were billed.
    """
    heads = store.read(
        """select number, to_ms(evidence_at) as evidence_ms, rows_id, digest, policy
        from billing.statement_days
        where to_ms(from_at) = $1 and to_ms(to_at) = $2
        order by number""",
        [day.from_ms, day.to_ms],
    )
    found = []
    for head in heads.iter_rows(named=True):
        kept = store.read(
            "select * from billing.statement_rows where rows_id = $1 order by position",
            [head["rows_id"]],
        )
        exact = kept.select(pl.col(name).cast(kind) for name, kind in rows.SCHEMA.items())
        billed = exact.with_columns(kept[theirs].alias(ours) for ours, theirs in _BILLED.items())
        if rows.digest(billed) != head["digest"]:
            raise StoreError(
                f"the statement of {day.date} in billing.statement_rows is not what was billed: "
                "its digest differs. Restore the database from a copy."
            )
        policy = policy_of_text(head["policy"])
        found.append(
            Booking(head["number"], head["evidence_ms"], head["digest"], policy, billed, exact)
        )
    return found


def close(store: Store, day: Day, policy: Policy, evidence_ms: int) -> None:
    """Write the statement of a day with the prices and tariffs it was made of.

    It books the credits that no statement has yet.
    """
    exact = computed(store, day, policy)
    origin = f"statement of {day.date}"
    tag = f"{day.from_ms}-{day.to_ms}"
    for table, frame in (
        ("statement_prices", _prices(store, day, exact)),
        ("statement_tariffs", _tariffs(store, day)),
    ):
        store.load(Batch(table, _sourced(frame), SOURCE, origin, f"{table} {tag}"))
    credit = adjustments.pending_rows(store, day, policy.currency)
    billed = pl.concat(
        [rows.in_cents(exact, smallest=currency.smallest_cents(policy.currency)), credit]
    )
    exact = pl.concat([exact, credit.drop("total_cost").cast(pl.Schema(rows.SCHEMA))])
    _write(store, day, Booking(0, evidence_ms, "", policy, billed, exact))
    store.build()  # from now on its hours keep these prices


def is_provable(store: Store, day: Day) -> bool:
    """Say whether the evidence of a day is whole: none of it was dropped by age.

    The first hour that is kept lacks the reading before it, so that its energy is no longer exact.
    """
    kept_from_ms = store.read("select max(kept_from_ms) as ms from state.kept_from").item()
    return kept_from_ms is None or day.from_ms >= kept_from_ms + HOUR_MS


def correct(store: Store, day: Day, before: list[Booking], evidence_ms: int) -> bool:
    """Write a correction where the evidence now says something else; return whether it did."""
    policy = before[0].policy
    now = computed(store, day, policy)
    booked = pl.concat([booking.exact for booking in before])
    difference = _difference(now, adjustments.without_credits(booked))
    if difference.is_empty():
        return False
    exact_total = rows.exact_total(now)
    smallest = currency.smallest_cents(policy.currency)
    total = rows.cents_of(exact_total, smallest) - sum(booking.own_cents for booking in before)
    billed = rows.in_cents(difference, total, smallest=smallest)
    _write(store, day, Booking(before[-1].number + 1, evidence_ms, "", policy, billed, difference))
    return True


def _write(store: Store, day: Day, booking: Booking) -> None:
    digest = rows.digest(booking.rows)
    rows_id = f"{day.from_ms}-{day.to_ms}-{booking.number}-{digest}"
    origin = f"statement of {day.date}"
    kept = booking.exact.with_columns(
        booking.rows[ours].alias(theirs) for ours, theirs in _BILLED.items()
    ).with_columns(
        pl.lit(rows_id).alias("rows_id"),
        pl.int_range(pl.len(), dtype=pl.Int32).alias("position"),
    )
    # the rows come first: without the day they are nobody's, and a repeated command finds them
    store.load(Batch("statement_rows", _sourced(kept), SOURCE, origin, rows_id))
    head = pl.DataFrame(
        {
            "day": [day.date],
            "zone": [day.zone],
            "from_at": [utc_at(day.from_ms)],
            "to_at": [utc_at(day.to_ms)],
            "number": [booking.number],
            "evidence_at": [utc_at(booking.evidence_ms)],
            "rows_id": [rows_id],
            "digest": [digest],
            "billed_cost": [Decimal(booking.billed_cents).scaleb(-2)],
            "policy": [_policy_text(booking.policy)],
        },
        schema_overrides={
            "from_at": INSTANT, "to_at": INSTANT, "evidence_at": INSTANT, "billed_cost": rows.CENTS,
            "number": pl.Int32,
        },
    )  # fmt: skip
    store.load(Batch("statement_days", _sourced(head), SOURCE, origin, f"day {rows_id}"))


def _difference(now: pl.DataFrame, before: pl.DataFrame) -> pl.DataFrame:
    """Return what has to be added to `before` to get `now`, row by row; equal rows are omitted."""
    sums: dict[Key, dict[str, Any]] = {}
    for frame, sign in ((before, -1), (now, 1)):
        for row in frame.iter_rows(named=True):
            key = Key(**{name: row[name] for name in rows.KEYS})
            total = sums.setdefault(key, dict.fromkeys((*rows.QUANTITIES, *rows.AMOUNTS)))
            total |= {"run_id": row["run_id"], "job_name": row["job_name"]}
            for name in (*rows.QUANTITIES, *rows.AMOUNTS):
                if row[name] is not None:
                    total[name] = (total[name] or 0) + sign * row[name]
    found = [
        {name: getattr(key, name) for name in rows.KEYS} | total
        for key, total in sorted(sums.items(), key=lambda item: item[0].order)
        if any(total[name] for name in rows.QUANTITIES)
        or any(round(total[name] or 0, COST_PLACES) for name in rows.AMOUNTS)
    ]
    return pl.DataFrame(found, schema=rows.SCHEMA)


def _prices(store: Store, day: Day, exact: pl.DataFrame) -> pl.DataFrame:
    """Return the prices of the kinds that the day charged, for the hours it touches."""
    used = exact.filter(pl.col("price_per_gpu_h").is_not_null()).select(
        "cluster", *(pl.col(name).fill_null("") for name in _KIND[1:])
    )
    found = store.read(
        """select cluster, gpu_model, mig_profile, partition, qos,
            from_ms(greatest(from_ms, $1)) as from_at, from_ms(least(to_ms, $2)) as to_at,
            list_price_per_gpu_h, factor, price_per_gpu_h
        from intermediate.int_prices
        where from_ms < $2 and to_ms > $1
        order by all""",
        [day.from_ms // HOUR_MS * HOUR_MS, -(-day.to_ms // HOUR_MS) * HOUR_MS],
    )
    return found.join(used.unique(), on=list(_KIND), how="semi")


def _tariffs(store: Store, day: Day) -> pl.DataFrame:
    return store.read(
        "select cluster, from_ms(hour_ms) as hour_at, price_per_kwh, price_per_wall_kwh "
        "from marts.statement_tariffs order by all",
        scope=day.scope,
    )


def _sourced(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(pl.lit(SOURCE).alias("source"))


def _policy_text(policy: Policy) -> str:
    quotas = [[cluster, team, str(gpus)] for (cluster, team), gpus in policy.quotas.items()]
    fields = {
        "idle": policy.idle,
        "credits_infra_failures": policy.credits_infra_failures,
        "currency": policy.currency,
        "definition_version": policy.definition_version,
        "evaluation_counts": policy.evaluation_counts,
        "charge_inferred": policy.charge_inferred,
        "credits": credit_rules.as_json(policy.credits),
    }
    return json.dumps({**fields, "quotas": sorted(quotas)}, sort_keys=True)


def policy_of_text(text: str) -> Policy:
    """Return the policy that a closed day was charged by, from `billing.statement_days`."""
    fields = json.loads(text)
    quotas = {(cluster, team): Decimal(gpus) for cluster, team, gpus in fields["quotas"]}
    return Policy(
        fields["idle"],
        fields["credits_infra_failures"],
        quotas,
        fields["currency"],
        fields.get("definition_version", 1),  # days closed before there were two
        fields.get("evaluation_counts", False),
        fields.get("charge_inferred"),  # days closed before ownership was inferred do not say
        credit_rules.from_json(fields.get("credits", [])),
    )
