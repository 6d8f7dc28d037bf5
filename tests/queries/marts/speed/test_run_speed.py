"""How fast runs are inside their steps: throughput, MFU, against their best and their peers."""

import io
from datetime import date
from pathlib import Path

import polars as pl
import pytest
from tests.queries.conftest import durable, each, steps

from goodput_billing.render import files, use_tables
from goodput_billing.statement.settings import StatementSettings
from goodput_billing.statement.statement import statement

PEAKS = Path(__file__).parents[4] / "queries/goodput_queries/sql/reference/gpu_model_peaks.csv"
H100 = "NVIDIA H100 80GB HBM3"


def trained(
    evidence, *, model=H100, ranks=2, count=200, length=2.0, name="1", metric=None, **of_a_step
):
    """Load a run whose ranks report steps; metric: fields of a `metric` event, as JSON."""
    evidence.node(name, ranks, model=model)
    evidence.job(name, 0, count * length, [name], ranks, job_name="llm")
    for rank in range(ranks):
        events = steps(1, count, 0, length, **of_a_step)
        evidence.events(name, events, rank=rank, host=name, gpu_uuid=f"c/{name}#{rank}")
    if metric:
        evidence.events(name, [{"event": "metric", "t": 1, "extra": metric}], host=name)


def speed(evidence, mart="run_speed"):
    return evidence.read(f"select * from marts.{mart} order by run_key").row(0, named=True)


PEAK = 989.4e12  # of an H100 SXM in dense bf16
NO_PEAK = "no peak in {} is known of {}"


# what it shows: what the run has and reports, columns
@each({
    "reported FLOPs are of the dense bf16 peak": (
        {"flops": 2.0 * 0.4 * PEAK},
        {"mfu_ratio": 0.4, "mfu_method": "reported FLOPs", "mfu_dtype": "bf16",
         "is_dtype_assumed": True, "mfu_reason": None,
         "work_reason": "the job reports neither tokens nor samples of its steps"}),
    "tokens and parameters": (
        {"tokens": 10_000.0, "metric": '{"params": 7e9, "dtype": "FP8"}'},
        {"mfu_ratio": 6 * 7e9 * 5000 / 1978.9e12, "mfu_method": "6 x parameters x tokens",
         "is_dtype_assumed": False}),
    "a sparse peak counts where the job declares it": (
        {"flops": 2.0 * PEAK, "metric": '{"dtype": "bf16", "is_sparse": true}'},
        {"mfu_ratio": 0.5}),
    # it does not say whether it is SXM, PCIe or NVL, whose peaks differ
    "of a model whose name is not whole no peak is known": (
        {"model": "h100", "flops": 1e12},
        {"mfu_ratio": None, "model_flops_per_s": 1e12,
         "mfu_reason": NO_PEAK.format("fp16", "h100")}),
    "nor in a type that is none": (
        {"flops": 1e12, "metric": '{"dtype": "quantised"}'},
        {"mfu_ratio": None, "mfu_reason": NO_PEAK.format("quantised", H100)}),
})  # fmt: skip
def test_mfu_of_a_run(cluster, reported, expected):
    trained(cluster, **reported)
    yield
    found = speed(cluster)
    assert {name: found[name] for name in expected} == pytest.approx(expected)


def logged(evidence, gpus, model, **of_a_line):
    """Load a job whose log alone reports steps."""
    evidence.node("a", gpus, model=model)
    evidence.job("1", 0, 400, ["a"], gpus)
    evidence.log("1", steps(1, 200, 0, 2.0, **of_a_line))


FOUR_RUNS = {"1": (2.0, 2), "2": (1.0, 2), "3": (1.0, 2), "4": (0.5, 1)}  # length of steps, ranks
NO_TOKENS = "the job reports no tokens"


# what it shows: what is loaded, view, columns of the first run
@each({
    "MFU above 1 is shown with its reason": (
        lambda c: trained(c, flops=3.0 * PEAK), "run_speed",
        {"mfu_ratio": 1.5, "left(mfu_reason, 14)": "above the peak"}),
    "rates per GPU of a log are of all GPUs of the gang": (
        lambda c: logged(c, 8, H100, gpu_tokens=100.0, gpu_flops=2.0 * 0.3 * PEAK), "run_speed",
        {"tokens_per_s": 400, "mfu_ratio": 0.3}),
    "the job's own MFU where nothing else is known": (
        lambda c: logged(c, 1, "h100", mfu_ratio=0.41), "run_speed",
        {"mfu_ratio": 0.41, "mfu_method": "reported MFU", "mfu_dtype": None}),
    "the best is the best tenth of windows": (
        # 20 % of the steps take 1 s, the others 2 s
        lambda c: [c.job_on_a_node("1", 0, 1000, 1),
                   c.events("1", [*steps(1, 100, 0, 1.0), *steps(101, 500, 100, 2.0)])],
        "run_speed", {"speed_unit": "steps", "best_ratio": 0.5, "best_step_s": 1}),
    "few steps have no best": (
        lambda c: trained(c, count=50), "run_speed",
        {"best_reason": "fewer than ten windows of ten steps"}),
    "peers are runs of the same name, model and size": (
        lambda c: [trained(c, name=name, length=length, ranks=ranks, tokens=10.0, count=20)
                   for name, (length, ranks) in FOUR_RUNS.items()],
        "run_peers", {"right(run_key, 2)": "/1", "peers": 2, "peer_ratio": 0.5}),
    "W01: 300 of 1,000 samples/s are a goodput of 0.3, whatever time says": (
        lambda c: [trained(c, name=n, samples=s) for n, s in (("1", 600.0), ("2", 2000.0))],
        "run_ceilings", {"goodput_ratio": 1, "throughput_goodput_ratio": 0.3, "work": 240_000,
                         "left(ceiling_source, 13)": "best measured", "ceiling_per_gpu_s": 1000}),
    "memory that is active all the time allows half of what is below the ridge": (
        lambda c: [trained(c, flops=2.0 * 0.05 * PEAK), *(c.readings(
            c.gpu(f"1#{n}"), range(0, 401, 10), dram_active_ratio=lambda _: 0.5) for n in (0, 1))],
        "run_rooflines", {"bytes_per_gpu_s": 0.5 * 3.35e12, "roof_ratio": 0.5}),
    "a declared ceiling that is passed is flagged": (
        lambda c: trained(c, tokens=9.0, metric='{"ceiling_tokens_per_gpu_s": 3}'), "run_ceilings",
        {"ceiling_ratio": 1.5, "ceiling_source": "declared", "left(ceiling_reason, 5)": "above"}),
    "without price, tokens and energy there is a reason": (
        trained, "run_token_costs",
        {"tokens_per_cost": None, "cost_reason": NO_TOKENS, "energy_reason": NO_TOKENS}),
    "tokens of all ranks over step time, without the first step": (
        lambda c: trained(c, tokens=1000.0, samples=4.0), "run_speed",
        {"steps": 199, "median_step_s": 2, "tokens_per_s": 1000, "tokens_per_gpu_s": 500,
         "samples_per_s": 4, "mfu_ratio": None,
         "mfu_reason": "the job reports neither FLOPs nor the number of its parameters"}),
})  # fmt: skip
def test_speed_of_a_run(cluster, load, mart, expected):
    load(cluster)
    yield
    columns = ", ".join(expected)
    (found, *_) = cluster.read(f"select {columns} from marts.{mart} order by run_key").rows()
    assert dict(zip(expected, found, strict=True)) == pytest.approx(expected)


def test_retained_tokens_are_held_against_all_allocated_time(cluster):
    """Steps 51 to 100 are lost; a GPU-hour costs 3.60, so that 1,000 s cost 1; 100 W."""
    cluster.job_on_a_node("1", 0, 1000, 1, state="FAILED")
    events = steps(1, 100, 0, 10.0, tokens=600.0)
    cluster.events("1", [*events, durable(50, 505)])
    cluster.add("rates", price_per_gpu_h=3.6, price_class="spot", currency="USD")
    cluster.readings(cluster.gpu("a#0"), range(0, 1001, 10), energy_j=lambda t: 100.0 * t)
    yield
    found = speed(cluster, "run_token_costs")

    assert found["tokens"] == found["tokens_per_cost"] == pytest.approx(30_000)
    assert found["tokens_per_j"] == pytest.approx(0.3, rel=0.02)
    columns = "price_class, work_unit, round(work_per_cost), round(work_per_kj, -1)"
    found = cluster.read(f"select {columns} from marts.work_by_gpu_model where not is_total")
    assert found.rows() == [("spot", "tokens", 30_000, 300)]


def test_tokens_of_an_account_are_held_against_its_runs_that_report_them(evidence, tmp_path):
    """Two runs of 400 s on two GPUs at 3.60 an hour cost 0.80 each; the third says nothing."""
    for name, tokens in (("1", 10.0), ("2", 30.0), ("3", None)):
        more = {} if tokens is None else {"tokens": tokens}
        trained(evidence, name=name, **more)
    evidence.add("rates", price_per_gpu_h=3.6, currency="USD", cluster=None)

    evidence.store.build()
    found = evidence.store.read("select * from marts.tokens_by_account").row(0, named=True)

    known = {"team": "team", "runs": 2, "held_ratio": 2 / 3, "tokens": 16e3, "tokens_per_cost": 1e4}
    assert {name: found[name] for name in known} == pytest.approx(known)

    # delivered files have the same, of the account in each of its rows; FOCUS has no such column
    made = statement(evidence.store, date(2027, 1, 15), StatementSettings())
    rows = pl.read_csv(io.BytesIO(files.csv(made))).filter(pl.col("line") == "usage")
    assert rows.height == 3
    assert set(rows["account_tokens"]) == {16_000}
    assert rows["account_tokens_per_cost"].to_list() == pytest.approx([10_000] * 3)
    assert rows["account_tokens_per_j"].null_count() == 3, "no energy was read"
    assert made.rows.filter(pl.col("line") == "idle")["account_tokens"].count() == 0
    assert use_tables.tokens(made).rows == [["team", "16,000", "10,000", "unknown"]]
    page, bill = files.write(made, tmp_path, ["html", "focus"])
    assert "Tokens per USD" in page.read_text()
    assert "token" not in bill.read_text().lower()


def test_peaks_have_a_source_and_names_match_one_model(cluster):
    names = {"NVIDIA A100-SXM4-40GB": "A100 SXM4 40GB", "NVIDIA A100 80GB PCIe": "A100 PCIe 80GB",
             "a100": "A100", "NVIDIA A10": "A10", "NVIDIA H100 PCIe": "H100 PCIe",
             "NVIDIA H100 NVL": "H100 NVL", H100: "H100 SXM5", "NVIDIA H200": "H200 SXM",
             "NVIDIA H200 NVL": "H200 NVL", "NVIDIA GH200 480GB": "GH200", "NVIDIA B200": "B200",
             "NVIDIA GB200": "GB200", "NVIDIA L40S": "L40S", "NVIDIA L4": "L4",
             "NVIDIA RTX 6000 Ada Generation": "RTX 6000 Ada", "AMD Instinct MI300X": "MI300X",
             "h100": None}  # fmt: skip
    for number, model in enumerate(names):
        cluster.node(f"n{number}", 1, model=model)
    yield

    found = cluster.read("select gpu_model, peak_model from marts.gpu_model_peaks").rows()

    assert dict(found).items() >= names.items()
    flops = pl.coalesce("bf16_flops_per_s", "fp16_flops_per_s")
    assert pl.read_csv(PEAKS).filter(pl.col("source").is_null() | flops.is_null()).is_empty()
