"""Which price an hour of a GPU has."""

from decimal import Decimal

import pytest

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions

HEADER = "cluster,gpu_model,mig_profile,partition,qos,price_per_gpu_h,factor,valid_from,valid_to\n"


@pytest.fixture
def priced(evidence, tmp_path):
    """Return what reads a rate card and gives the price of each hour of a job on an H100."""
    evidence.node("a", 1, model="NVIDIA H100 80GB HBM3")
    evidence.job("1", 0, 4 * 3600, ["a"], 1, partition="gpu", qos="scavenger")

    def prices(card):
        file = tmp_path / "rates.csv"
        file.write_text(HEADER + card)
        ingest(evidence.store, "rates", [file], ReadOptions())
        evidence.store.build()
        rows = evidence.store.read(
            "select price_per_gpu_h from marts.ledger_scoped where job_run_key is not null "
            "order by hour_ms"
        )
        return [None if cost is None else float(cost) for cost in rows["price_per_gpu_h"]]

    return prices


def test_the_price_of_the_gpus_model_comes_before_that_of_partition_and_qos(priced):
    card = ",,,,,1,,,\n,,,,scavenger,2,,,\n,,,gpu,,3,,,\n,H100,,,,4,,,\n"

    assert priced(card) == [4] * 4


def test_a_price_of_the_qos_comes_before_one_for_all(priced):
    assert priced(",,,,scavenger,2,,,\n,,,,,9,,,\n") == [2] * 4


def test_a_price_of_another_cluster_is_none(priced):
    assert priced("d,H100,,,,9,,,\n") == [None] * 4


def test_the_clusters_own_price_comes_before_one_for_all(priced):
    assert priced(",H100,,,,9,,,\nc,,,,,2,,,\n") == [2] * 4


def test_all_factors_that_match_multiply(priced):
    card = ",H100,,,,2,,,\n,,,,scavenger,,0.5,,\n,,,gpu,,,0.9,,\n,,,cpu,,,0.1,,\n"

    assert priced(card) == [0.9] * 4


def test_a_factor_alone_makes_no_price(priced):
    assert priced(",,,,scavenger,,0.5,,\n") == [None] * 4


def test_a_price_changes_on_its_hour(priced):
    card = ",H100,,,,2,,,\n,H100,,,,3,,2027-01-15T10:00:00Z,\n"

    assert priced(card) == [2, 2, 3, 3]


@pytest.mark.parametrize(
    ("earlier", "later"), [("H100", "NVIDIA H100 80GB HBM3"), ("NVIDIA H100 80GB HBM3", "H100")]
)
def test_of_equally_specific_prices_the_later_one_applies(priced, earlier, later):
    """Two names of one model are two rates, neither of which replaces the other."""
    card = f",{later},,,,2,,2027-01-15T10:00:00Z,\n,{earlier},,,,9,,2027-01-15T08:00:00Z,\n"

    assert priced(card) == [9, 9, 2, 2]


@pytest.mark.parametrize("dear", ["H100", "NVIDIA H100 80GB HBM3"])
def test_of_equally_specific_prices_of_one_moment_the_higher_one_applies(priced, dear):
    names = ("H100", "NVIDIA H100 80GB HBM3")
    card = "".join(f",{name},,,,{3 if name == dear else 2},,,\n" for name in names)

    assert priced(card) == [3] * 4


def test_an_hour_that_was_charged_keeps_its_price(evidence, priced):
    """The first day that charged it decides, and jobs of another QOS have the new price."""
    evidence.job("2", 4 * 3600, 5 * 3600, ["a"], 1, partition="gpu", qos="high")
    assert priced(",H100,,,,2,,,\n") == [2] * 5
    kind = evidence.store.read(
        "select cluster, gpu_model, mig_profile, partition, qos from intermediate.int_prices "
        "where qos = 'scavenger'"
    ).row(0, named=True)
    days = [
        {**kind, "from_at": evidence.at(from_h * 3600), "to_at": evidence.at((from_h + 2) * 3600),
         "list_price_per_gpu_h": price, "factor": factor, "price_per_gpu_h": price * factor}
        for from_h, price, factor in ((0, Decimal(2), Decimal(1)), (1, Decimal(6), Decimal("0.5")))
    ]  # fmt: skip
    evidence.load("statement_prices", days, "statement")

    assert priced(",H100,,,,5,,,\n") == [2, 2, 3, 5, 5]
    found = evidence.store.read(
        "select list_price_per_gpu_h::double, factor::double from intermediate.int_prices "
        "where qos = 'scavenger' order by from_ms"
    ).rows()
    assert found == [(5, 1), (2, 1), (2, 1), (6, 0.5), (5, 1)]


def test_factors_are_exact(evidence, priced):
    priced(",H100,,,,2.850001,,,\n,,,,scavenger,,0.333333,,\n")

    (price,) = evidence.store.read(
        "select price_per_gpu_h, list_price_per_gpu_h, factor from intermediate.int_prices "
        "where qos = 'scavenger'"
    ).to_dicts()

    assert price == {
        "price_per_gpu_h": Decimal("0.949999"),
        "list_price_per_gpu_h": Decimal("2.850001"),
        "factor": Decimal("0.333333"),
    }


def test_a_price_of_the_partition_comes_before_one_of_the_qos(priced):
    assert priced(",,,,scavenger,2,,,\n,,,gpu,,3,,,\n,,,,,1,,,\n") == [3] * 4


def test_the_price_of_a_mig_profile_comes_before_that_of_its_gpus_model(evidence, tmp_path):
    gpu = {"cluster": "c", "gpu_uuid": "GPU-1", "valid_from_at": evidence.at(0)}
    evidence.load("gpus", [{**gpu, "node": "m", "gpu_index": 0, "gpu_model": "h100"}], "nvml")
    part = {**gpu, "gpu_instance": "1", "profile": "3g.40gb", "compute_slices": 3}
    evidence.load("gpu_instances", [part], "nvml")
    file = tmp_path / "rates.csv"
    file.write_text(HEADER + ",H100,,,,2,,,\n,,3g.40gb,,,9,,,\n")
    ingest(evidence.store, "rates", [file], ReadOptions())
    evidence.watched(3600)
    evidence.store.build()

    found = evidence.store.read(
        "select mig_profile, list_price_per_gpu_h::double from intermediate.int_prices "
        "where gpu_model = 'h100' and partition = '' group by all"
    )

    assert dict(found.rows()) == {"": 2, "3g.40gb": 9}
