"""Input of a run: what its GPUs need against what the store, local disks and memory give."""

from collections.abc import Callable

from goodput_scenarios.scenario import Values, Worked, number, scenario
from goodput_scenarios.span import Span

THOUSAND, PERCENT, ONE = Span.of(1000), Span.of(100), Span.of(1)


def _need_gb(values: Values) -> Span:
    return values["gpus"] * values["feed_mb_per_gpu_s"] / THOUSAND


def _need(values: Values) -> Worked:
    need = _need_gb(values)
    gpus, each = number(values["gpus"], 0), number(values["feed_mb_per_gpu_s"], 1)
    return need, f"{gpus} x {each} / 1,000 = {number(need)} GB/s"


def _store_share(values: Values) -> Worked:
    return _percent(_need_gb(values), values["store_gb_per_s"])


def _fed(values: Values) -> Worked:
    store, each = values["store_gb_per_s"], values["feed_mb_per_gpu_s"]
    fed = store * THOUSAND / each
    return fed, f"{number(store)} x 1,000 / {number(each, 1)} = {number(fed, 0)}"


def _staging(values: Values) -> Worked:
    each, rate = values["dataset_gb"] / values["nodes"], values["local_gb_per_s"]
    found = each / rate
    return found, f"{number(each)} / {number(rate)} = {number(found, 0)} s"


def _quotient(part: str, whole: str) -> Callable[[Values], Worked]:
    def work(values: Values) -> Worked:
        found = values[part] / values[whole]
        return found, f"{number(values[part])} / {number(values[whole])} = {number(found)}"

    return work


def _loader_gb(values: Values) -> Span:
    batches = values["workers_per_gpu"] * values["prefetch"]
    return values["gpus"] / values["nodes"] * batches * values["batch_mb"] / THOUSAND


def _loaders(values: Values) -> Worked:
    found = _loader_gb(values)
    factors = [
        values[name] for name in ("gpus", "nodes", "workers_per_gpu", "prefetch", "batch_mb")
    ]
    gpus, nodes, workers, prefetch, batch = (number(factor, 0) for factor in factors)
    text = f"{gpus} / {nodes} x {workers} x {prefetch} x {batch} / 1,000 = {number(found)} GB"
    return found, text


def _memory_share(values: Values) -> Worked:
    return _percent(_loader_gb(values), values["memory_gb"])


def _overhead(values: Values) -> Worked:
    real, synthetic = values["real_per_s"], values["synthetic_per_s"]
    found = (ONE - real / synthetic) * PERCENT
    return found, f"(1 - {number(real)} / {number(synthetic)}) x 100 = {number(found)} %"


def _percent(part: Span, whole: Span) -> Worked:
    found = part / whole * PERCENT
    return found, f"{number(part)} / {number(whole)} x 100 = {number(found)} %"


FEED = scenario(
    "feed",
    "Input and storage",
    "What must storage give to feed these GPUs, and does the input fit on disks and in memory?",
    _need,
    _store_share,
    _fed,
    _quotient("dataset_gb", "nodes"),
    _staging,
    _quotient("dataset_gb", "store_gb_per_s"),
    _loaders,
    _memory_share,
    _overhead,
)
