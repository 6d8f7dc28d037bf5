"""Evidence of serving engines for made-up clusters."""

SERIES = {"engine": "0", "role": "both", "product": "vllm"}


def engine(cluster, node="a", *, model="limited", **more):
    """Return what identifies an engine of a cluster."""
    return {"cluster": cluster.name, "endpoint": f"{node}:8000", "node": node, "model": model,
            **SERIES, **more}  # fmt: skip


def scrapes(cluster, of, seconds, generated, *, running=lambda _: 0):
    """Load scrapes of an engine: what it has generated and how many requests run."""
    values = {"generation_tokens": generated, "requests_running": running}
    cluster.load("serving_samples",
                 [{**of, "ts": cluster.at(s), "metric": metric, "value": float(value(s))}
                  for s in seconds for metric, value in values.items()])  # fmt: skip


def busy(cluster, of, first, last, *, since=0):
    """Load scrapes of an engine that generates ten tokens a second from `since` on, every 10 s."""
    scrapes(cluster, of, range(first, last + 1, 10), lambda second: 10 * max(0, second - since),
            running=lambda second: second > since)  # fmt: skip


def buckets(cluster, of, metric, counts, *, minutes=range(61)):
    """Load a histogram, read every minute, that grows by these counts up to each bound."""
    cluster.load("serving_histograms",
                 [{**of, "ts": cluster.at(60 * minute), "metric": metric, "le_s": le_s,
                   "observations": count * minute} for minute in minutes
                  for le_s, count in counts.items()])  # fmt: skip


def request(cluster, key, start, end, **more):
    """Return a request whose first token came after 0.1 s."""
    return {"cluster": cluster.name, "endpoint": "a:8000", "request_id": key, "model": "limited",
            "arrival_at": cluster.at(start), "end_at": cluster.at(end),
            "first_token_at": cluster.at(start + more.pop("ttft", 0.1)), "output_tokens": 100,
            "status": "ok", **more}  # fmt: skip
