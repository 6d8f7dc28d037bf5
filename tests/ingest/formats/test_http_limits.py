"""Servers that drip, hang, flood or lead elsewhere: an answer has a total time and a size."""

# ruff: noqa: DTZ001 -- moments are stored naive, in UTC
import contextlib
import gzip
import itertools
import socket
import threading
import time
from datetime import datetime

import pytest
from tests.tables import each

from goodput_ingest.prometheus_api.client import Client
from goodput_ingest.prometheus_api.discovery import Discovery
from goodput_ingest.prometheus_api.endpoint import Endpoint
from goodput_ingest.scrapes import targets
from goodput_ingest.sources.dcgm.live import DcgmLive
from goodput_queries.errors import IngestError

NOW = datetime(2026, 11, 20, 12)
TIMEOUT_S = 30.0  # what answers must do so within this on a busy machine
SHORT_S, SLACK_S, DRIP_S = 0.1, 5.0, 0.03
NEVER = threading.Event()
PAGE = b'DCGM_FI_DEV_POWER_USAGE{UUID="GPU-a",gpu="0"} 600\n'
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def dripping(start, byte):
    def pieces():
        yield start
        for _ in range(600):
            NEVER.wait(DRIP_S)
            yield byte

    return pieces


def whole(*parts):
    return lambda: iter(parts)


SLOW = {
    "a header that never ends": dripping(b"HTTP/1.1 200 OK\r\nX-Slow: ", b"a"),
    "headers without end": dripping(b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n"),
    "a status line that never ends": dripping(b"HTTP/1.1 200 ", b"O"),
    "provisional answers": dripping(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "a body byte by byte": dripping(OK + b"Content-Length: 100000\r\n\r\n", b" "),
    "chunks byte by byte": dripping(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "an error byte by byte": dripping(b"HTTP/1.1 500 no\r\nContent-Length: 9999\r\n\r\n", b"a"),
    "nothing": dripping(b"", b""),
}


class Server:
    """A server on 127.0.0.1 that sends the same pieces to whoever asks."""

    def __init__(self, pieces):
        self.asked = 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._pieces = pieces
        self._serving = threading.Thread(target=self._serve, daemon=True)
        self._serving.start()

    @property
    def url(self):
        """Where it listens."""
        return f"http://127.0.0.1:{self._listening.getsockname()[1]}"

    def close(self):
        """Stop listening; closed under `accept`, its number could be the next server's by then."""
        self._listening.shutdown(socket.SHUT_RDWR)
        self._serving.join()
        self._listening.close()

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                self.asked += 1
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection):
        with contextlib.suppress(OSError), connection:
            connection.recv(65_536)
            for piece in self._pieces():
                connection.sendall(piece)


@pytest.fixture
def serve():
    with contextlib.ExitStack() as stack:
        yield lambda pieces: stack.enter_context(contextlib.closing(Server(pieces)))


@pytest.fixture
def hurried(monkeypatch):
    """Give answers a short total time, for servers that never end theirs."""
    monkeypatch.setitem(globals(), "TIMEOUT_S", SHORT_S)


def query(url):
    with Client(Endpoint(url=url, timeout_s=TIMEOUT_S, answer_max_bytes=1 << 20)) as client:
        client.query("up")


def discover(url):
    with Discovery(Endpoint(url=url, timeout_s=TIMEOUT_S)) as discovery:
        discovery.metric_names(0, 1)


def scrape(url):
    list(DcgmLive(urls=[url], timeout_s=TIMEOUT_S, answer_max_bytes=1 << 20).poll({}, NOW))


@each(*itertools.product([query, discover, scrape], SLOW))
@pytest.mark.usefixtures("hurried")
def test_an_answer_ends_at_its_total_time_however_it_drips(serve, ask, kind):
    began = time.monotonic()

    late = r"it (did not answer|sent only a part) within 0\.1 s" if ask is scrape else r"0\.1 s"
    with pytest.raises(IngestError, match=f"{late}|status 500"):
        ask(serve(SLOW[kind]).url)

    assert time.monotonic() - began < SHORT_S + SLACK_S


def test_a_slow_target_does_not_delay_a_good_one(serve, monkeypatch):
    monkeypatch.setattr(targets, "PROMPT_S", 1.0)
    good = serve(whole(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(PAGE), PAGE))
    over = threading.Event()
    slow = [serve(lambda: iter([over.wait(20) and b""])).url for _ in range(3)]
    batches = DcgmLive(urls=[*slow, good.url], timeout_s=20.0).poll({}, NOW)

    first = next(batches)
    over.set()

    assert first.rows["power_w"].to_list() == [600.0]
    assert len([reject for batch in batches for reject in batch.rejects]) == len(slow)


def test_targets_that_failed_take_no_turn_of_good_ones(serve):
    page = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(PAGE), PAGE)
    order = []
    urls = [
        serve(lambda name=name, answer=answer: iter([order.append(name) or answer])).url
        for name, answer in (("failing", b""), ("good", page))
    ]
    source = DcgmLive(urls=urls, timeout_s=TIMEOUT_S, parallel=1)

    for _ in range(2):
        list(source.poll({}, NOW))

    assert order == ["failing", "good", "good", "failing"]


@pytest.mark.parametrize("ask", [query, discover, scrape])
def test_an_answer_without_end_is_cut_at_its_size(serve, ask, monkeypatch):
    monkeypatch.setattr("goodput_ingest.prometheus_api.client.SMALL_MAX_BYTES", 1 << 20)
    flood = serve(lambda: itertools.chain([OK + b"\r\n"], itertools.repeat(b" " * 65_536)))
    with pytest.raises(IngestError, match=r"larger than 1 MiB|more than \d+ bytes"):
        ask(flood.url)


@pytest.mark.parametrize("ask", [query, discover, scrape])
def test_an_answer_packed_twice_is_not_unpacked(serve, ask):
    bomb = gzip.compress(gzip.compress(b" " * (1 << 24)))
    head = OK + b"Content-Encoding: gzip, gzip\r\nContent-Length: %d\r\n\r\n" % len(bomb)
    with pytest.raises(IngestError, match="encoding that was not asked for"):
        ask(serve(whole(head, bomb)).url)


@pytest.mark.parametrize("ask", [query, discover, scrape])
@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_reported_and_not_followed(serve, ask, status):
    elsewhere = serve(whole(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
    head = f"HTTP/1.1 {status} Moved\r\nLocation: {elsewhere.url}/\r\nContent-Length: 0\r\n\r\n"

    with pytest.raises(IngestError, match=str(status)):
        ask(serve(whole(head.encode())).url)

    assert elsewhere.asked == 0


@pytest.mark.usefixtures("hurried")
def test_a_name_that_is_looked_up_for_long_is_not_waited_for(monkeypatch):
    over = threading.Event()

    def hangs(*_, **__):
        over.wait(10)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", hangs)
    began = time.monotonic()

    with pytest.raises(IngestError, match="no connection"):
        query("http://prometheus.example:9090")
    over.set()

    assert time.monotonic() - began < SHORT_S + SLACK_S
