"""Requests that wait for their scrape, are loaded once, and of which nothing is lost unsaid."""

import pytest
from tests.ingest.received.writers import (
    NOON,
    NOON_MS,
    POWER,
    UNKNOWN,
    UTIL,
    WRITE,
    Receiver,
    gpu,
    packed,
    written,
)
from tests.tables import each

from goodput_ingest.received.live import LATE
from goodput_ingest.received.spool import FullError, Spool
from goodput_queries.errors import IngestError

SAMPLES = "select epoch(ts)::bigint % 60, gpu_busy_ratio, power_w from raw.gpu_samples order by 1"
SOURCE = ("remote-write", "/api/v1/write")


@pytest.fixture
def spool_of(tmp_path):
    """Give what makes a spool with a clock."""
    return lambda clock_s=lambda: 0.0: Spool(tmp_path / "received", clock_s)


@pytest.fixture
def receiver(spool_of):
    """Give a receiver of remote-write."""
    return Receiver(spool_of, cluster="lab")


def test_samples_are_loaded_as_those_of_a_scrape_are(store, receiver):
    """Until then the request is readable by its user alone."""
    receiver.write((gpu(UTIL), [(0, 50.0)]), (gpu(POWER), [(0, 400.5)]))
    (path, _), *_ = receiver.source.spool.waiting()
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    receiver.poll(store, 20)

    assert store.read(SAMPLES).rows() == [(0, 0.5, 400.5)]
    gpus = store.read("select cluster, node, gpu_index from raw.gpus").rows()
    assert gpus == [("lab", "gpu-a01", 0)]
    assert store.read("select distinct source, origin from state.ingested").rows() == [SOURCE]


def test_a_scrape_in_two_requests_is_one_reading(store, receiver):
    receiver.write((gpu(UTIL), [(0, 50.0), (15, 60.0)]), at=15)
    receiver.write((gpu(POWER), [(0, 400.0), (15, 410.0), (30, 420.0)]), at=34)
    receiver.poll(store, 34)
    assert store.read(SAMPLES).is_empty()

    receiver.poll(store, 35)
    assert store.read(SAMPLES).rows() == [(0, 0.5, 400.0), (15, 0.6, 410.0)]

    receiver.write((gpu(UTIL), [(30, 70.0)]), at=40)
    receiver.poll(store, 54)
    assert store.read(SAMPLES).rows()[2] == (30, 0.7, 420.0)
    assert receiver.source.spool.waiting()
    receiver.poll(store, 60)
    assert not receiver.source.spool.waiting()


def test_samples_that_come_too_late_for_their_scrape_are_rejected(store, receiver):
    receiver.write((gpu(UTIL), [(0, 50.0)]))
    receiver.poll(store, 20)
    receiver.write((gpu(POWER), [(0, 400.0), (15, 410.0)]), at=25)
    receiver.poll(store, 45)

    assert store.read(SAMPLES).rows() == [(0, 0.5, None), (15, None, 410.0)]
    rejects = "select source, origin, reason, content from raw.rejects"
    assert store.read(rejects).rows() == [(*SOURCE, LATE, "1 samples of 1 scrapes")]


def test_what_waits_outlives_the_process_and_is_loaded_once(store, receiver, spool_of):
    receiver.write((gpu(UTIL), [(0, 50.0)]))
    polled = receiver.source.poll({}, NOON.replace(second=20))
    store.load(next(polled))  # then the process is killed: its request was not removed
    polled.close()

    again = Receiver(spool_of, cluster="lab")
    again.poll(store, 60)

    assert store.read(SAMPLES).rows() == [(0, 0.5, None)]
    assert not again.source.spool.waiting()


def test_after_a_restart_the_rest_of_a_scrape_is_awaited(store, receiver, spool_of):
    receiver.write((gpu(UTIL), [(0, 50.0)]))
    spool = spool_of(lambda: NOON_MS / 1000 + 300)  # nobody served for five minutes
    again = Receiver(lambda _: spool, cluster="lab")
    again.poll(store, 319)
    assert store.read(SAMPLES).is_empty()

    again.write((gpu(POWER), [(0, 400.0)]))
    again.poll(store, 320)
    assert store.read(SAMPLES).rows() == [(0, 0.5, 400.0)]


def test_a_request_that_could_not_be_loaded_is_loaded_by_the_next_poll(store, receiver):
    receiver.write((gpu(UTIL), [(0, 50.0)]))
    receiver.write((gpu(POWER), [(0, 400.0), (15, 410.0)]), at=19)
    polled = receiver.source.poll({}, NOON.replace(second=20))
    next(polled)
    polled.close()  # the database failed

    receiver.poll(store, 20)
    receiver.poll(store, 39)
    assert store.read(SAMPLES).rows() == [(0, 0.5, 400.0), (15, None, 410.0)]


def test_each_series_is_read_rejected_or_says_nothing(store, receiver):
    receiver.write(
        (gpu(UTIL), [(0, 50.0)]), (gpu(UNKNOWN), [(0, 1.0)]),
        (gpu(POWER), [(0, float("nan"))]),  # it has ended
        (gpu(POWER, 1, **{f"l{n}": "x" for n in range(100)}), [(0, 1.0)]),
        (gpu(POWER, 2), [(-3e9, 1.0)]), ({"__name__": "up", "job": "dcgm"}, [(0, 1.0)]),
        ({"__name__": "apiserver_\x1b[31m", "job": "kube"}, [(0, 1.0)]),
        ({"__name__": "rocm_use"}, [(0, 1.0)]),
    )  # fmt: skip
    (path, _), *_ = receiver.source.spool.waiting()
    found = receiver.source.spool.read(path)
    parts = (len(found.series), len(found.rejects), found.silent, sum(found.others.values()))
    assert parts == (2, 2, 2, 2)
    assert found.seen == sum(parts)

    receiver.poll(store, 20)
    assert receiver.source.skipped == (
        "/api/v1/write: of 8 series in requests 2 were read, 2 rejected, 2 are known to say "
        "nothing, 2 are of no exporter that is read (apiserver_\ufffd[31m, rocm_use); "
        "metrics of GPUs by an exporter that is not read: rocm_use"
    )
    reasons = store.read("select reason from raw.rejects order by 1")["reason"].to_list()
    assert reasons == ["a sample has no valid time", "it has more than 100 labels"]
    kept = store.read("select metric, value from raw.gpu_samples_other")
    assert kept.rows() == [(UNKNOWN, 1.0)]  # and named by `goodput doctor`


def test_more_than_may_wait_is_to_be_sent_again(store, spool_of):
    receiver = Receiver(spool_of)
    receiver.source.spool.max_bytes = 2 * 4_096
    for at in (0, 1):
        receiver.write((gpu(UTIL), [(at, 50.0)]), at=at)
    with pytest.raises(FullError, match="send it again"):
        receiver.write((gpu(UTIL), [(2, 50.0)]), at=2)

    receiver.poll(store, 20)
    receiver.write((gpu(UTIL), [(2, 50.0)]), at=21)
    assert len(receiver.source.spool.waiting()) == 2


def test_a_long_silence_is_a_failure_once_something_had_arrived(store, receiver):
    receiver.poll(store, 3_600)
    receiver.write((gpu(UTIL), [(0, 50.0)]))
    receiver.poll(store, 20)
    receiver.poll(store, 600)
    with pytest.raises(IngestError, match="nothing has arrived for 10 min"):
        receiver.poll(store, 601)


def test_a_damaged_file_is_a_reject(store, receiver):
    receiver.write((gpu(UTIL), [(0, 50.0)]))
    (path, _), *_ = receiver.source.spool.waiting()
    path.write_bytes(path.read_bytes()[:20])
    receiver.poll(store, 20)

    reasons = store.read("select reason from raw.rejects")["reason"].to_list()
    assert reasons == ["the file of a request is damaged"]
    assert not receiver.source.spool.waiting()


def test_many_requests_are_loaded_in_parts(store, receiver, monkeypatch):
    monkeypatch.setattr("goodput_ingest.received.live.SAMPLES_MAX", 3)
    for at in range(4):
        receiver.write((gpu(UTIL), [(at, 50.0)]), (gpu(POWER), [(at + 1, 400.0)]), at=at)
    receiver.poll(store, 60)

    assert store.read(SAMPLES).rows() == [
        (0, 0.5, None), *((at, 0.5, 400.0) for at in (1, 2, 3)), (4, None, 400.0),
    ]  # fmt: skip
    assert store.read("select * from raw.rejects").is_empty()


@each(
    ({"content-type": "text/plain"}, b"", 415), (WRITE | {"content-encoding": "gzip"}, b"", 415),
    (WRITE, b"no snappy", 400), (WRITE, packed(b"no protobuf"), 400),
    (WRITE, packed(written((gpu(UTIL), [(0, 1.0)])))[:-9], 400),
    (WRITE, packed(bytes(1 << 21)), 413),
)  # fmt: skip
def test_what_is_no_request_is_refused(spool_of, headers, body, status):
    source = Receiver(spool_of).source
    source.body_max_bytes = 1 << 20
    with pytest.raises(IngestError) as refused:
        source.receive(headers, body)
    assert refused.value.status == status
    assert not source.spool.waiting()


def test_version_2_is_refused_with_the_headers_that_nothing_was_written(receiver):
    kind = "application/x-protobuf;proto=io.prometheus.write.v2.Request"
    reply = receiver.source.receive(WRITE | {"content-type": kind}, b"")

    assert reply.status == 415
    assert reply.headers == {
        f"X-Prometheus-Remote-Write-{one}-Written": "0"
        for one in ("Samples", "Histograms", "Exemplars")
    }


def test_a_native_histogram_is_a_reject(receiver):
    labels = gpu("vllm:request_latency_seconds", instance="10.0.0.1:8000")
    data = written((labels, []))
    # a histogram without fields, appended to the series: field 4, length 0
    data = data[:1] + bytes([data[1] + 2, *data[2:], 0x22, 0])
    receiver.source.receive(WRITE, packed(data))

    (path, _), *_ = receiver.source.spool.waiting()
    found = receiver.source.spool.read(path)
    assert [reason for reason, _ in found.rejects] == ["native histograms are not read"]
