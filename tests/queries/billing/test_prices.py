"""Which price an hour of a GPU has."""

from decimal import Decimal

from tests.queries.conftest import shown_by

H100, LONG = "H100", "NVIDIA H100 80GB HBM3"


def rate(price, model=None, from_h=None, **more):
    """Return a rate of this cluster, from an hour on."""
    since = None if from_h is None else from_h * 3600
    return "rates", {"price_per_gpu_h": Decimal(price), "gpu_model": model, "valid_from_at": since,
                     **more}  # fmt: skip


def factor(by, **more):
    return "rate_factors", {"factor": Decimal(by), **more}


def held(evidence):
    """Load a job of four hours on an H100."""
    evidence.node("a", 1, model=LONG)
    evidence.job("1", 0, 4 * 3600, ["a"], 1, partition="gpu", qos="scavenger")


def prices(evidence):
    rows = evidence.read(
        "select price_per_gpu_h from marts.ledger_scoped where job_run_key is not null "
        "order by hour_ms"
    )
    return [None if cost is None else float(cost) for cost in rows["price_per_gpu_h"]]


# what it shows: rates; price of each hour of a job of QOS scavenger in partition gpu, on an H100
test_price_of_an_hour = shown_by({
    "the price of the GPU's model comes before that of partition and QOS": (
        [rate(1), rate(2, qos="scavenger"), rate(3, partition="gpu"), rate(4, H100)], [4] * 4),
    "a price of the partition comes before one of the QOS": (
        [rate(2, qos="scavenger"), rate(3, partition="gpu"), rate(1)], [3] * 4),
    "a price of the QOS comes before one for all": ([rate(2, qos="scavenger"), rate(9)], [2] * 4),
    "a price of another cluster is none": ([rate(9, H100, cluster="d")], [None] * 4),
    "all factors that match multiply": (
        [rate(2, H100), factor("0.5", qos="scavenger"), factor("0.9", partition="gpu"),
         factor("0.1", partition="cpu")], [0.9] * 4),
    "a price of a weak currency is kept exactly": (
        [rate("2500000.25", H100), factor("1.5", qos="scavenger")], [3_750_000.375] * 4),
    "factors that make more of a price than an amount can be leave none": (
        [rate(10**11, H100), factor(1000, qos="scavenger")], [None] * 4),
    "a factor alone makes no price": ([factor("0.5", qos="scavenger")], [None] * 4),
    "a price changes on its hour": ([rate(2, H100), rate(3, H100, from_h=2)], [2, 2, 3, 3]),
    # two names of one model are two rates, neither of which replaces the other
    "of equally specific prices the later one applies": (
        [rate(2, LONG, from_h=2), rate(9, H100, from_h=0)], [9, 9, 2, 2]),
    "of equally specific prices the later one applies, whichever its name": (
        [rate(2, H100, from_h=2), rate(9, LONG, from_h=0)], [9, 9, 2, 2]),
    "of equally specific prices of one moment the higher one applies": (
        [rate(3, H100), rate(2, LONG)], [3] * 4),
    "of equally specific prices of one moment the higher one, whichever its name": (
        [rate(2, H100), rate(3, LONG)], [3] * 4),
}, load=lambda c, rates: [held(c), *(c.add(*rate) for rate in rates)], read=prices)  # fmt: skip


def cut_gpu(cluster):
    """Load a GPU with an instance, and prices of its model and of the profile."""
    gpu = {"gpu_uuid": cluster.gpu("m"), "source": "nvml", "valid_from_at": 0}
    cluster.add("gpus", node="m", gpu_index=0, gpu_model="h100", **gpu)
    part = {"gpu_instance": "1", "profile": "3g.40gb", "compute_slices": 3}
    cluster.add("gpu_instances", part, **gpu)
    cluster.add("rates", rate(2, H100)[1], rate(9, mig_profile="3g.40gb")[1])
    cluster.watched(3600)


EXACT = tuple(map(Decimal, ("0.949999", "2.850001", "0.333333")))
test_prices_of_kinds = shown_by({
    "factors are exact": (
        lambda c: [held(c), c.add("rates", rate("2.850001", H100)[1]),
                   c.add("rate_factors", factor("0.333333", qos="scavenger")[1])],
        lambda c: c.own("distinct price_per_gpu_h, list_price_per_gpu_h, factor",
                        "intermediate.int_prices", "qos = 'scavenger'"), [EXACT]),
    "the price of a MIG profile comes before that of its GPU's model": (
        cut_gpu,
        lambda c: c.own("distinct mig_profile, list_price_per_gpu_h::double",
                        "intermediate.int_prices", "gpu_model = 'h100' and partition = ''"),
        [("", 2), ("3g.40gb", 9)]),
})  # fmt: skip


def test_an_hour_that_was_charged_keeps_its_price(evidence):
    """The first day that charged it decides, and jobs of another QOS have the new price.

    The cluster's own price comes before one for all.
    """
    held(evidence)
    evidence.job("2", 4 * 3600, 5 * 3600, ["a"], 1, partition="gpu", qos="high")
    evidence.add("rates", rate(9, H100, cluster=None)[1], rate(2)[1])
    evidence.build()
    assert prices(evidence) == [2] * 5
    kind = evidence.store.read(
        "select cluster, gpu_model, mig_profile, partition, qos from intermediate.int_prices "
        "where qos = 'scavenger' and gpu_model <> ''"
    ).row(0, named=True)
    days = [
        {**kind, "from_at": evidence.at(from_h * 3600), "to_at": evidence.at((from_h + 2) * 3600),
         "list_price_per_gpu_h": price, "factor": factor, "price_per_gpu_h": price * factor}
        for from_h, price, factor in ((0, Decimal(2), Decimal(1)), (1, Decimal(6), Decimal("0.5")))
    ]  # fmt: skip
    evidence.load("statement_prices", days, "statement")
    evidence.add("rates", rate(5)[1])
    evidence.build()

    assert prices(evidence) == [2, 2, 3, 5, 5]
    found = evidence.store.read(
        "select list_price_per_gpu_h::double, factor::double from intermediate.int_prices "
        "where qos = 'scavenger' and gpu_model <> '' order by from_ms"
    ).rows()
    assert found == [(5, 1), (2, 1), (2, 1), (6, 0.5), (5, 1)]
