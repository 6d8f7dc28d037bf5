"""Asking a server that is slow, cuts, refuses, lies about its content or asks who we are."""

import base64
import os
from pathlib import Path

import pytest
from tests.ingest.http_pages import serving
from tests.ingest.sources.prometheus.fake_server import FakeServer, Reply
from tests.tables import each, refuses

from goodput_ingest.prometheus_api import client as client_module
from goodput_ingest.prometheus_api.client import Client, TooLargeError
from goodput_ingest.prometheus_api.discovery import Discovery
from goodput_ingest.prometheus_api.endpoint import Endpoint
from goodput_queries.errors import IngestError

TWO = b'{"status":"success","data":{"resultType":"vector","result":[{},{}]}}'
VARIABLE, NO_SUCH = "PROMETHEUS_TOKEN", "NO_SUCH"


@pytest.fixture
def ask(fake):
    """Ask the fake server one query, after telling it what to reply."""

    def asked(reply, **settings):
        fake.answer = lambda _: reply
        with Client(Endpoint(url=fake.url, **settings)) as client:
            return client.query("up")

    return asked


def test_raw_samples_are_asked_for_as_a_range_that_ends_now(fake):
    """A range selector, never query_range; a POST, since lists of metrics are long."""
    with Client(Endpoint(url=fake.url + "/")) as client:
        client.samples('{__name__=~"A|B"}', 1_787_234_500_000, 1_787_234_800_123)

    (request,) = fake.asked
    assert request.path == "/api/v1/query"
    assert request.fields == {
        "query": '{__name__=~"A|B"}[300124ms]', "time": "1787234800.123", "timeout": "58000ms",
    }  # fmt: skip


@each(
    (422, "execution", "query processing would load too many samples into memory", True),
    (400, "bad_data", "exceeded maximum resolution of 11,000 points per timeseries", True),
    (400, "bad_data", "the query hit the max number of series limit", True),
    (503, "timeout", "query timed out in expression evaluation", True),
    *((status, "execution", "found duplicate series", False) for status in (400, 422, 500)),
)
def test_a_query_that_is_too_much_is_not_a_wrong_one(ask, status, error_type, error, is_too_much):
    said = {"status": "error", "errorType": error_type, "error": error}

    with pytest.raises(IngestError, match=f"status {status} .*said {error_type}: {error}") as got:
        ask(Reply(said, status))

    assert isinstance(got.value, TooLargeError) is is_too_much


def page(status):
    """Return what is between us and the server, which has no words of Prometheus."""
    return {"body": b"<html>no</html>", "status": status, "kind": "text/html"}


@each({
    "no credentials": (page(401), "check username and password, or the token"),
    "a redirect": (page(302), "possibly to a login page"),
    "no such path": (page(404), "expected an answer of Prometheus's API"),
    "a page for people": (page(200), "the answer is text/html, expected JSON; url"),
    "half a body": ({"cut": 20}, "the answer broke off"),
    "a reset": ({"is_reset": True}, r"http://127\.0\.0\.1:[0-9]+: the answer broke off"),
    "broken compression": ({"body": b"no gzip", "headers": {"Content-Encoding": "gzip"}},
                           "badly compressed"),
})  # fmt: skip
def test_what_is_no_answer_is_one_sentence(ask, reply, said):
    with pytest.raises(IngestError, match=said):
        ask(Reply(**reply))


@each({
    "one that came in part": (
        {"timeout_s": 0.3}, {"body": b" " * 1000, "pause_s": 0.01}, r"than 0.3 s \(timeout_s\)"),
    "one over the size": ({"answer_max_bytes": 10}, {"body": b"{" + b" " * 2000}, "larger than"),
    "one of many series": ({"answer_max_series": 1}, {"body": TWO}, r"has 2 series, over 1 \(ans"),
})  # fmt: skip
def test_of_an_answer_that_is_too_large_less_is_asked(ask, monkeypatch, limits, reply, said):
    monkeypatch.setattr(client_module, "MUCH_BYTES", 10)
    with pytest.raises(TooLargeError, match=said):
        ask(Reply(**reply), **limits)


def test_a_password_comes_from_a_file_and_goes_as_basic(fake, ask, tmp_path):
    file = tmp_path / "password"
    file.write_text("s3cret\n")

    ask(Reply(), username="reader", password_file=str(file))

    expected = base64.b64encode(b"reader:s3cret").decode()
    assert fake.asked[0].headers["authorization"] == f"Basic {expected}"


def test_a_token_comes_from_the_environment_and_goes_as_bearer(fake, ask, monkeypatch):
    monkeypatch.setenv(VARIABLE, "abc")

    ask(Reply(), token_env=VARIABLE, tenant="team-a")
    with Discovery(Endpoint(url=fake.url, token_env=VARIABLE)) as discovery:
        discovery.metric_names(0, 1)

    assert [one.headers["authorization"] for one in fake.asked] == ["Bearer abc"] * 2
    assert fake.asked[0].headers["x-scope-orgid"] == "team-a"


test_a_secret_or_certificate_that_is_missing_is_named = refuses(
    IngestError,
    lambda given: Client(Endpoint(url="https://a", **given)),
    ({"token_env": NO_SUCH}, "the environment variable NO_SUCH is not set"),
    ({"username": "u", "password_file": "/no/such"}, "/no/such: the secret in it cannot be"),
    ({"ca_file": "/no/such"}, "a certificate file cannot be read"),
)


test_what_is_no_url_is_refused_without_repeating_its_password = refuses(
    IngestError,
    lambda url: Endpoint(url=url),
    *((url, "the URL of a server") for url in ("prometheus:9090", "ftp://a", "http://", "")),
    ("http://me:geheim@prometheus:9090", "carries a user or password"),
)


@pytest.fixture
def over_tls(tls, certificate):
    """Give a server behind its certificate."""
    with serving(FakeServer().reply, tls) as address:
        yield f"https://{address}", str(certificate[0])


def test_a_certificate_is_trusted_by_its_file_only_unless_the_site_looks_at_none(over_tls):
    url, file = over_tls

    with Client(Endpoint(url=url, ca_file=file)) as client:
        assert client.query("up").series == []
    with Discovery(Endpoint(url=url, ca_file=file)) as discovery:
        discovery.check()
    with Client(Endpoint(url=url)) as client, pytest.raises(IngestError, match="certificate"):
        client.query("up")
    with Discovery(Endpoint(url=url)) as discovery, pytest.raises(IngestError, match="ca_file"):
        discovery.check()
    with Client(Endpoint(url=url, is_certificate_checked=False)) as client:
        assert client.query("up").series == []


def test_certificates_are_read_again_once_their_file_has_changed(over_tls, tmp_path):
    _, trusted = over_tls
    file = tmp_path / "ca.pem"
    file.write_bytes(Path(trusted).read_bytes())
    endpoint = Endpoint(url="https://a", ca_file=str(file))
    before = endpoint.tls()
    assert endpoint.tls() is before

    os.utime(file, ns=(1, 1))
    assert endpoint.tls() is not before
