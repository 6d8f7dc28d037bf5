"""The statement as a FOCUS file (FinOps Open Cost and Usage Specification), 1.2 to 1.4.

One row a line of the statement: allocated time is Usage, credits are Credit, what was not allocated
and what has no price of its own is an Adjustment. EffectiveCost adds up to the statement, to the
cent; list and contracted cost are unit price x quantity, exactly. From 1.3 on shares of idle time
are rows of their own that say how they were allocated. Column rules: focus.finops.org, 1.2 to 1.4.

Programs read the file: names stand in it as they are, also those that a spreadsheet would run as a
formula. For people there is the statement's own CSV.
"""

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

import polars as pl

from goodput_billing.render.safe_text import harmless_text
from goodput_billing.statement.amounts.charges import IDLE_LINES, MJ_PER_KWH, MS_PER_HOUR, known_mj
from goodput_billing.statement.amounts.ownership import HELD_LINES, words_of
from goodput_billing.statement.amounts.rounding import apportion
from goodput_billing.statement.amounts.summary import NOBODYS
from goodput_billing.statement.days import day_of, days_in_month
from goodput_billing.statement.statement import Statement
from goodput_queries.scope import iso

VERSIONS = ("1.2", "1.3", "1.4")
UNIT = "GPU-Hours"
QUANTITY = Decimal("0.000000001")
RATIO_DECIMALS = 12
PREEMPTIBLE = frozenset({"scavenger", "preemptible", "preempt", "spot"})
CUSTOM = (
    *("x_HeldGpuSeconds", "x_ProductiveGpuSeconds", "x_IdleHeldGpuSeconds", "x_LostGpuSeconds"),
    *("x_UnknownGpuSeconds", "x_EnergyKwh", "x_IdleShareCost", "x_JobCount"),
    "x_DefinitionVersion",
)
_SHARED = (
    *("AvailabilityZone", "BilledCost", "BillingAccountId", "BillingAccountName"),
    *("BillingCurrency", "BillingPeriodEnd", "BillingPeriodStart", "CapacityReservationId"),
    *("CapacityReservationStatus", "ChargeCategory", "ChargeClass", "ChargeDescription"),
    *("ChargeFrequency", "ChargePeriodEnd", "ChargePeriodStart", "CommitmentDiscountCategory"),
    *("CommitmentDiscountId", "CommitmentDiscountName", "CommitmentDiscountStatus"),
    *("CommitmentDiscountType", "ConsumedQuantity"),
    *("ConsumedUnit", "ContractedCost", "ContractedUnitPrice", "EffectiveCost", "InvoiceId"),
    *("InvoiceIssuerName", "ListCost", "ListUnitPrice", "PricingCategory", "PricingQuantity"),
    *("PricingUnit", "RegionId", "RegionName", "ResourceId", "ResourceName", "ResourceType"),
    *("ServiceCategory", "ServiceName", "ServiceSubcategory", "SkuId", "SkuMeter"),
    *("SkuPriceDetails", "SkuPriceId", "SubAccountId", "SubAccountName", "SubAccountType", "Tags"),
)
ALLOCATED = (
    *("AllocatedMethodDetails", "AllocatedMethodId", "AllocatedResourceId"),
    *("AllocatedResourceName", "AllocatedTags"),
)
PROVIDERS = ("HostProviderName", "ServiceProviderName")
COLUMNS = {
    "1.2": (*sorted((*_SHARED, "ProviderName", "PublisherName")), *CUSTOM),
    "1.3": (*sorted((*_SHARED, *ALLOCATED, *PROVIDERS)), *CUSTOM),
    # its data set Invoice Detail is not written: no row has a line of it
    "1.4": (*sorted((*_SHARED, *ALLOCATED, *PROVIDERS, "InvoiceDetailId")), *CUSTOM),
}


@dataclass(frozen=True)
class _Maker:
    """What all rows of a file share."""

    statement: Statement
    version: str

    @property
    def _allocates(self) -> bool:
        return self.version != "1.2"

    def rows(self) -> Iterator[dict[str, Any]]:
        ratios = _ratios(self.statement.rows) if self._allocates else {}
        for i, row in enumerate(self.statement.rows.iter_rows(named=True)):
            if row["total_cost"] is None:
                continue  # no price: FOCUS has no word for it, and 0 would be a lie
            share = row["idle_share_cost"] if i in ratios else Decimal("0.00")
            whole_away = row["line"] in IDLE_LINES and not row["total_cost"] and self._allocates
            if not whole_away and not (row["line"] == "idle_share" and i in ratios):
                yield self._charge(row, row["total_cost"] - share)
            if share:
                yield self._allocated(row, share, ratios[i])

    def _charge(self, row: Mapping[str, Any], cost: Decimal) -> dict[str, Any]:
        billed = Decimal("0.00") if self.statement.settings.showback else cost
        found = self._common(row) | {"BilledCost": billed, "EffectiveCost": cost}
        price, listed = row["price_per_gpu_h"], row["list_price_per_gpu_h"]
        if row["line"] in HELD_LINES and price is not None:
            hours = gpu_hours(row["gpu_ms"])
            sku = _sku(row)
            return found | {
                "ChargeCategory": "Usage",
                "ChargeDescription": _description(row, hours, words_of(row).strip(" ()")),
                "ConsumedQuantity": hours,
                "ConsumedUnit": UNIT,
                "PricingQuantity": hours,
                "PricingUnit": UNIT,
                "PricingCategory": "Dynamic" if row["qos"] in PREEMPTIBLE else "Standard",
                "ListUnitPrice": listed,
                "ContractedUnitPrice": price,
                "ListCost": listed * hours,
                "ContractedCost": price * hours,
                "SkuId": sku,
                "SkuMeter": "GPU time",
                "SkuPriceId": "/".join((sku, row["partition"] or "", row["qos"] or "")),
                "SkuPriceDetails": _json({"x_Factor": float(row["factor"])}),
            }
        category = "Credit" if row["line"] == "credit" else "Adjustment"
        words = {
            "credit": _credited(row),
            "idle_share": "Share of idle GPU time",
            **dict.fromkeys(HELD_LINES, "Electricity and idle share of GPU time without a price"),
        }
        description = (
            words.get(row["line"]) or f"{NOBODYS[row['line']]}: GPU time that was not allocated"
        )
        return found | {
            "ChargeCategory": category,
            "ChargeDescription": _description(row, gpu_hours(row["gpu_ms"]), description),
            "ChargeFrequency": "One-Time" if row["adjustment_id"] else "Usage-Based",
            "ListCost": billed,
            "ContractedCost": billed,
        }

    def _allocated(self, row: Mapping[str, Any], share: Decimal, ratio: Decimal) -> dict[str, Any]:
        """Return the share of idle time that a line carries, as a row of the idle time's cost."""
        billed = Decimal("0.00") if self.statement.settings.showback else share
        element = {
            "AllocatedRatio": float(ratio),
            "UsageUnit": UNIT,
            "UsageQuantity": float(gpu_hours(row["gpu_ms"])),
        }
        origin = f"{row['cluster']}/idle"
        return self._common(row) | dict.fromkeys(CUSTOM) | {
            "BilledCost": billed,
            "EffectiveCost": share,
            "ListCost": billed,
            "ContractedCost": billed,
            "ChargeCategory": "Adjustment",
            "ChargeDescription": f"Share of the idle GPU time of {row['cluster']}",
            "ResourceId": origin,
            "ResourceName": origin,
            "ResourceType": "GPU Node",
            "AllocatedMethodId": f"idle-{self.statement.policy.idle.replace('_', '-')}-v1",
            "AllocatedMethodDetails": _json({"Elements": [element]}),
            "AllocatedResourceId": row["run_key"] or f"{row['cluster']}/{row['team']}",
            "AllocatedResourceName": row["job_name"] or row["run_id"] or row["team"],
            "AllocatedTags": _tags(row),
            "x_IdleShareCost": share,
        }  # fmt: skip

    def _common(self, row: Mapping[str, Any]) -> dict[str, Any]:
        day, settings = self.statement.day, self.statement.settings
        # the month as days are cut, so that it holds all of their charge periods
        first = day.date.replace(day=1)
        following = first + timedelta(days=days_in_month(first))
        month_ms, month_end_ms = (day_of(when, settings).from_ms for when in (first, following))
        is_account = row["team"] is not None and row["line"] not in NOBODYS
        invoice = None
        if self.statement.is_closed:
            number = f"-{row['correction']}" if row["correction"] else ""
            invoice = f"goodput-{day.date}{number}"
        found = {
            "BillingAccountId": _slug(settings.organisation) or settings.organisation,
            "BillingAccountName": settings.organisation,
            "BillingCurrency": self.statement.policy.currency,
            "BillingPeriodStart": iso(month_ms),
            "BillingPeriodEnd": iso(month_end_ms),
            "ChargePeriodStart": iso(day.from_ms),
            "ChargePeriodEnd": iso(day.to_ms),
            "ChargeClass": "Correction" if row["correction"] else None,
            "ChargeFrequency": "Usage-Based",
            "InvoiceId": invoice,
            "InvoiceIssuerName": settings.organisation,
            "RegionId": _slug(settings.site) or None,
            "RegionName": settings.site or None,
            "ResourceId": row["run_key"] or f"{row['cluster']}/{row['line']}",
            "ResourceName": row["job_name"] or row["run_id"] or f"{row['cluster']}/{row['line']}",
            "ResourceType": "GPU Job" if row["run_key"] else "GPU Node",
            "ServiceCategory": "Compute",
            "ServiceSubcategory": "Other (Compute)",
            "ServiceName": f"GPU cluster {row['cluster']}",
            "SubAccountId": f"{row['cluster']}/{row['team']}" if is_account else None,
            "SubAccountName": row["team"] if is_account else None,
            "SubAccountType": "Account" if is_account else None,
            "Tags": _tags(row),
            "x_HeldGpuSeconds": _seconds(row["gpu_ms"]) if row["line"] in HELD_LINES else None,
            "x_ProductiveGpuSeconds": _seconds(row["productive_ms"]),
            "x_IdleHeldGpuSeconds": _seconds(row["idle_held_ms"]),
            "x_LostGpuSeconds": _seconds(row["lost_ms"]),
            "x_UnknownGpuSeconds": _seconds(row["unsettled_ms"]),
            "x_EnergyKwh": _kwh(known_mj(row)),
            "x_IdleShareCost": row["idle_share_cost"],
            "x_JobCount": row["job_runs"],
            "x_DefinitionVersion": self.statement.policy.definition_version,
        }
        providers = PROVIDERS if self._allocates else ("ProviderName", "PublisherName")
        return found | dict.fromkeys(providers, settings.organisation)


def focus(statement: Statement, version: str = "1.2") -> bytes:
    """Return the file as CSV: columns in the order of the specification, then our own."""
    columns = COLUMNS[version]
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    for row in _Maker(statement, version).rows():
        writer.writerow([_cell(row.get(column)) for column in columns])
    return stream.getvalue().encode()


def gpu_hours(gpu_ms: int) -> Decimal:
    """Return GPU milliseconds as GPU-hours, to a billionth: 4 microseconds of a GPU."""
    return (Decimal(gpu_ms) / MS_PER_HOUR).quantize(QUANTITY)


def _ratios(rows: pl.DataFrame) -> dict[int, Decimal]:
    """Return, by row, which part of its cluster's shared idle cost it carries; they make 1.

    In the statement of one account: of its own share: a share of the total would reveal
    the rest.
    """
    carried: dict[str, list[tuple[int, int]]] = {}
    for i, row in enumerate(rows.iter_rows(named=True)):
        if (
            row["line"] in (*HELD_LINES, "idle_share")
            and row["idle_share_cost"]
            and not row["correction"]
        ):
            share = (i, int(row["idle_share_cost"] * 100))
            carried.setdefault(row["cluster"], []).append(share)
    found = {}
    for shares in carried.values():
        whole = sum(cents for _, cents in shares)
        if whole:
            scaled = [cents * 10**RATIO_DECIMALS for _, cents in shares]
            parts = apportion(scaled, 10**RATIO_DECIMALS, whole)
            for (i, _), part in zip(shares, parts, strict=True):
                found[i] = Decimal(part).scaleb(-RATIO_DECIMALS)
    return found


def _description(row: Mapping[str, Any], hours: Decimal, words: str = "") -> str:
    amount = f"{hours.quantize(Decimal('0.01')):,} {row['gpu_model'] or 'GPU'} GPU-Hours"
    place = ", ".join(
        f"{name} {row[key]}"
        for name, key in (("account", "team"), ("partition", "partition"), ("MIG", "mig_profile"))
        if row[key]
    )
    parts = [words, amount if row["gpu_ms"] else "", place]
    return ", ".join(part for part in parts if part)


def _credited(row: Mapping[str, Any]) -> str:
    if row["adjustment_id"] is None:
        return "Credit for what failed infrastructure cost"
    return f"Credit for {row['for_day']}: {row['reason']}"


def _sku(row: Mapping[str, Any]) -> str:
    parts = ["gpu", _slug(row["gpu_model"] or "unknown"), _slug(row["mig_profile"] or "")]
    return ".".join(part for part in parts if part)


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-")


def _tags(row: Mapping[str, Any]) -> str | None:
    labels = {"user": row["user_name"], "partition": row["partition"], "qos": row["qos"]}
    return (
        _json({name: value for name, value in labels.items() if value})
        if any(labels.values())
        else None
    )


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _seconds(ms: int) -> Decimal:
    return Decimal(ms).scaleb(-3)


def _kwh(mj: int | None) -> Decimal | None:
    return None if mj is None else (Decimal(mj) / MJ_PER_KWH).quantize(QUANTITY)


def _cell(value: object) -> object:
    """Return a value as FOCUS writes it: null is empty, numbers have no exponent.

    Texts are those of a CSV file: see `csv_cells`.
    """
    if isinstance(value, str):
        return harmless_text(value)
    return "" if value is None else f"{value:f}" if isinstance(value, Decimal) else value
