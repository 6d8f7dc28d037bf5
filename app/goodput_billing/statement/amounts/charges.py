"""What each line of a day costs, exactly: price times time, electricity, and who carries idle time.

Nothing is rounded here; amounts are fractions. Sharing out moves money between lines
and never makes any: the shares of a pool add up to it, and what nobody can carry stays where it is.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from goodput_billing.statement.amounts import currency, ownership
from goodput_billing.statement.amounts.credit_rules import CreditRule
from goodput_billing.statement.amounts.ownership import HELD_LINES

MS_PER_HOUR = 3_600_000
MJ_PER_KWH = 3_600_000_000
DEFINITION_VERSION = 2  # of goodput, as definition_version() of the database
IDLE_POLICIES = ("none", "proportional", "uniform", "by_quota")
IDLE_LINES = ("reserved_idle", "idle")
ZERO = Fraction(0)


@dataclass(frozen=True)
class Policy:
    """What a site decided: who carries idle time, and whether failed infrastructure is credited.

    quotas: GPUs kept for an account, by (cluster, account), for `by_quota`; "" is any cluster.
    currency: ISO 4217 code of what its prices are in. definition_version: what useful time is, 1:
    without communication, 2: with it. evaluation_counts: declared evaluation is useful too.
    charge_inferred: time whose owner is inferred has its price, else 0; None: it is idle time, as
    for days that were closed before ownership was inferred. credits: rules of the credits that a
    later statement gives for the day.
    """

    idle: str = "none"
    credits_infra_failures: bool = False
    quotas: Mapping[tuple[str, str], Decimal] = field(default_factory=dict)
    currency: str = currency.DEFAULT
    definition_version: int = DEFINITION_VERSION
    evaluation_counts: bool = False
    charge_inferred: bool | None = False
    credits: tuple[CreditRule, ...] = ()


@dataclass(frozen=True)
class Key:
    """The key of a line; None is none (idle time has no user) or not known."""

    line: str
    cluster: str
    team: str | None = None
    user_name: str | None = None
    run_key: str | None = None
    partition: str | None = None
    qos: str | None = None
    gpu_model: str | None = None
    mig_profile: str | None = None
    list_price_per_gpu_h: Decimal | None = None
    factor: Decimal | None = None
    price_per_gpu_h: Decimal | None = None

    @property
    def place(self) -> tuple[str, ...]:
        """Return the group of lines it belongs to, outermost first: what is rounded together."""
        of_nobody = "1" if self.line in (*IDLE_LINES, "not_available") else "0"
        return (self.cluster, of_nobody, self.team or "", self.line, self.user_name or "")

    @property
    def order(self) -> tuple[str, ...]:
        """Return where it stands in a statement: its place, then the rest of it."""
        rest = ("" if getattr(self, f.name) is None else str(getattr(self, f.name)) for f in _REST)
        return (*self.place, *rest)


_REST = fields(Key)[4:]


@dataclass(frozen=True)
class Quantities:
    """What was measured of a line: see `marts.statement_lines`; milliseconds of whole GPUs."""

    job_runs: int = 0
    gpu_ms: int = 0
    productive_ms: int = 0
    other_use_ms: int = 0
    own_waste_ms: int = 0
    platform_waste_ms: int = 0
    unsettled_ms: int = 0
    idle_held_ms: int = 0
    lost_ms: int = 0
    credit_ms: int = 0
    energy_mj: int | None = None
    measured_ms: int | None = None
    untariffed_mj: int = 0
    wall_mj: int | None = None


def known_mj(row: Mapping[str, Any]) -> int | None:
    """Return the energy of a line's GPUs; without counters, what their nodes' meters counted."""
    energy: int | None = row["wall_mj"] if row["energy_mj"] is None else row["energy_mj"]
    return energy


@dataclass(frozen=True)
class Charge:
    """A line with its exact amounts; None where a price is missing.

    direct: time x price. idle_share: what it carries of idle time, or what an idle line gave away.
    electricity: of the GPUs of the line, with what it carries of idle GPUs'; None: not known.
    """

    key: Key
    quantities: Quantities
    run_id: str | None
    job_name: str | None
    direct: Fraction | None
    idle_share: Fraction
    electricity: Fraction | None

    @property
    def total(self) -> Fraction | None:
        """Return what the line costs, None where nothing of it has a price."""
        known = [amount for amount in (self.direct, self.electricity) if amount is not None]
        if not known and not self.idle_share:
            return None
        return sum(known, self.idle_share)


def charges(rows: Iterable[Mapping[str, Any]], policy: Policy) -> list[Charge]:
    """Return the charges of `marts.statement_lines` rows under a policy, in statement order."""
    of_policy = ownership.lines_under(rows, charge_inferred=policy.charge_inferred)
    found = [_charge(row, policy) for row in of_policy]
    if policy.credits_infra_failures:
        found += [_credit(c) for c in found if c.key.line in HELD_LINES and c.quantities.credit_ms]
    shared: list[Charge] = []
    for cluster in sorted({charge.key.cluster for charge in found}):
        shared += _shared_out([c for c in found if c.key.cluster == cluster], policy)
    return sorted(shared, key=lambda charge: charge.key.order)


def _charge(row: Mapping[str, Any], policy: Policy) -> Charge:
    price, metered = row["price_per_gpu_h"], row["metered_mj_price"]
    measured = Quantities(**{f.name: row[f.name] for f in fields(Quantities)})
    counted = row["other_use_ms"] if policy.evaluation_counts else 0
    if policy.definition_version == 1:
        counted -= row["communication_ms"]
    return Charge(
        key=Key(**{f.name: row[f.name] for f in fields(Key)}),
        quantities=replace(
            measured,
            productive_ms=measured.productive_ms + counted,
            other_use_ms=measured.other_use_ms - counted,
        ),
        run_id=row["run_id"],
        job_name=row["job_name"],
        direct=None if price is None else Fraction(price) * row["gpu_ms"] / MS_PER_HOUR,
        idle_share=ZERO,
        electricity=None if metered is None else Fraction(metered) / MJ_PER_KWH,
    )


def _credit(usage: Charge) -> Charge:
    """Return the row that gives back what failed infrastructure cost; usage stays as it is."""
    price, credit_ms = usage.key.price_per_gpu_h, usage.quantities.credit_ms
    return replace(
        usage,
        key=replace(usage.key, line="credit"),
        quantities=Quantities(credit_ms=credit_ms),  # its job runs are counted with the usage
        direct=None if price is None else -Fraction(price) * credit_ms / MS_PER_HOUR,
        electricity=None,
    )


def _shared_out(of_cluster: Sequence[Charge], policy: Policy) -> list[Charge]:
    """Return the charges of one cluster with its idle time where the policy wants it."""
    if policy.idle == "none":
        return list(of_cluster)
    carried: defaultdict[Key, list[Fraction]] = defaultdict(lambda: [ZERO, ZERO])
    result: dict[Key, Charge] = {charge.key: charge for charge in of_cluster}
    for owner, pools in _pools(of_cluster, policy).items():
        weights = _weights(pools[0].key.cluster, owner, of_cluster, policy)
        whole = sum(weights.values(), ZERO)
        if not whole:
            continue  # nobody to carry it: it stays on its own line
        direct = sum((pool.direct or ZERO for pool in pools), ZERO) / whole
        electricity = sum((pool.electricity or ZERO for pool in pools), ZERO) / whole
        for key, weight in weights.items():
            carried[key][0] += direct * weight
            carried[key][1] += electricity * weight
        for pool in pools:
            carried[pool.key][0] -= pool.direct or ZERO
            carried[pool.key][1] -= pool.electricity or ZERO
    for key, (idle, electricity) in carried.items():
        charge = result.get(key) or Charge(key, Quantities(), None, None, None, ZERO, None)
        own = charge.electricity
        result[key] = replace(
            charge,
            idle_share=idle,
            electricity=own if own is None and not electricity else (own or ZERO) + electricity,
        )
    return list(result.values())


def _pools(of_cluster: Sequence[Charge], policy: Policy) -> dict[str | None, list[Charge]]:
    """Return idle lines by whose they are before all others', None: nobody's; see `_weights`."""
    pools: defaultdict[str | None, list[Charge]] = defaultdict(list)
    for charge in of_cluster:
        if charge.key.line in IDLE_LINES:
            is_owned = policy.idle == "by_quota" and charge.key.line == "reserved_idle"
            pools[charge.key.team if is_owned else None].append(charge)
    return pools


def _weights(
    cluster: str, owner: str | None, of_cluster: Sequence[Charge], policy: Policy
) -> dict[Key, Fraction]:
    """Return who carries idle lines, and with what weight; nobody where all weights are 0."""
    direct = {c.key: c.direct for c in of_cluster if c.key.line in HELD_LINES and c.direct}
    if policy.idle == "proportional":
        return direct
    accounts: defaultdict[str, Fraction] = defaultdict(lambda: ZERO)
    for key, amount in direct.items():
        accounts[key.team or ""] += amount
    if policy.idle == "uniform":
        return {key: amount / accounts[key.team or ""] for key, amount in direct.items()}
    wanted = _quotas(cluster, policy) if owner is None else {owner: Fraction(1)}
    spread = {
        key: wanted[key.team or ""] * amount / accounts[key.team or ""]
        for key, amount in direct.items()
        if key.team in wanted
    }
    absent = {
        Key("idle_share", cluster, team): weight
        for team, weight in wanted.items()
        if team not in accounts
    }
    return spread | absent


def _quotas(cluster: str, policy: Policy) -> dict[str, Fraction]:
    """Return the quotas that hold in a cluster; its own come before those of any cluster."""
    of_any = {team: gpus for (where, team), gpus in policy.quotas.items() if not where}
    own = {team: gpus for (where, team), gpus in policy.quotas.items() if where == cluster}
    return {team: Fraction(gpus) for team, gpus in (of_any | own).items() if gpus}
