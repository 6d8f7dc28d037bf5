"""Exporters, live: the page `/metrics` of each is fetched and read as a recorded scrape is.

All targets of a poll are dated with its beginning; their values may be as old as the exporters'
own collection interval (30 s by default) in any case. What could not be scraped is not made up
later: an exporter has no past.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import accumulate, chain
from pathlib import Path
from typing import ClassVar, Final

import httpx

from goodput_ingest.formats.files import are_of_cr
from goodput_ingest.formats.parsed import Parsed
from goodput_ingest.formats.prometheus_text import exposition
from goodput_ingest.formats.prometheus_text.series import MARK, KnownSeries
from goodput_ingest.http_limits import TooLargeAnswerError, body, limited_client, within
from goodput_ingest.prometheus_api.endpoint import Credentials, Endpoint
from goodput_ingest.scrapes.pages import PageFormat
from goodput_ingest.source import Batch, Reject
from goodput_queries.errors import IngestError

ACCEPT: Final = {"Accept": "text/plain;version=0.0.4", "Accept-Encoding": "gzip"}
HEAD_BYTES: Final = 256 * 1024
PAGES_BYTES: Final = 96 * 1024 * 1024  # some 400,000 lines are read at once
PROMPT_S: Final = 2.0  # what answers so soon waits for no other


class _UnansweredError(Exception):
    """Why a target gave no metrics, as the end of a sentence."""


@dataclass(frozen=True)
class Page:
    """The answer of a target."""

    url: str
    text: bytes

    def stamped(self, at: datetime) -> bytes:
        """Return the text behind the line that says when and where it was scraped."""
        moment = at.replace(tzinfo=UTC).isoformat().replace("+00:00", "Z")
        return f"{MARK}{moment} {self.url}\n".encode() + self.text.rstrip(b"\n") + b"\n"


@dataclass(frozen=True, kw_only=True)
class Targets(Credentials):
    """Exporters that are scraped directly; a subclass says what their pages are, and gives rows.

    urls: the metrics pages, as `http://gpu-a01:9400/metrics`; a URL without a path means /metrics.
    cluster: what their nodes belong to.
    timeout_s: how long a target may take in all. answer_max_bytes,
    answer_max_series: how much it may send.
    record_to: a file to which each poll is appended, to be read in elsewhere or replayed.
    """

    name: ClassVar[str]
    pages: ClassVar[PageFormat]

    urls: Sequence[str]
    cluster: str | None = None
    interval_s: float = 30.0
    timeout_s: float = 10.0
    answer_max_bytes: int = 16 * 1024 * 1024
    answer_max_series: int = 250_000
    parallel: int = 64
    record_to: Path | None = None
    _failed: set[str] = field(default_factory=set, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse settings that name no target, or a URL that is none."""
        if not self.urls:
            raise IngestError(f"{self.name}: no urls are given; expected http://node:port/metrics.")
        for url in self.urls:
            self._endpoint(url)

    def poll(self, reached: Mapping[str, datetime], now: datetime) -> Iterator[Batch]:  # noqa: ARG002 -- an exporter has no past
        """Yield what the targets say now; raises IngestError where none of them answers.

        A target that does not answer while others do becomes a reject with its name.
        """
        unanswered: list[Reject] = []
        answered = 0
        pages: list[Page] = []
        for group in self._fetched():
            for found in group:
                if isinstance(found, Reject):
                    unanswered.append(found)
                    continue
                answered += 1
                pages.append(found)
                if sum(len(page.text) for page in pages) > PAGES_BYTES:
                    yield from self._batches(pages, now, [])
                    pages = []
            if pages:
                yield from self._batches(pages, now, unanswered)
                pages, unanswered = [], []
        if not answered:
            raise self._none_answered(unanswered)
        if unanswered:
            yield from self._batches([], now, unanswered)

    def probe(self) -> list[str]:
        """Say what each target has and which counters it could have; raises as `poll` does."""
        findings: list[str] = []
        unanswered: list[Reject] = []
        names: set[str] = set()
        for found in chain.from_iterable(self._fetched()):
            if isinstance(found, Reject):
                unanswered.append(found)
                continue
            read = exposition.parse(found.text, KnownSeries(self.pages.labels))
            names |= set(read.series["metric"])
            findings.append(f"{found.url}: {self._summary(read)}")
        if not findings:
            raise self._none_answered(unanswered)
        findings += [reject.reason for reject in unanswered]
        return findings + self._missing(names)

    def _rows(
        self, read: exposition.Exposition, rejects: Sequence[Reject], now: datetime
    ) -> list[Parsed]:
        """Return the rows of raw tables that pages scraped now give, and these rejects."""
        raise NotImplementedError

    def _summary(self, read: exposition.Exposition) -> str:
        """Return what a page has, in a few words."""
        raise NotImplementedError

    def _missing(self, names: set[str]) -> list[str]:
        """Return a sentence for each thing that pages with these metrics lack."""
        raise NotImplementedError

    def _batches(
        self, pages: Sequence[Page], now: datetime, unanswered: Sequence[Reject]
    ) -> Iterator[Batch]:
        texts = [page.stamped(now) for page in pages]
        data = b"".join(texts)
        if self.record_to is not None:
            self._record(data)
        read = exposition.parse(self.pages.with_targets(data), KnownSeries(self.pages.labels))
        rejects = [*unanswered, *_by_target(read.rejects, texts, pages)]
        for parsed in self._rows(read, rejects, now):
            yield parsed.batch(
                source=self.name, origin=self.origin, digest=read.digest(self.cluster)
            )

    @property
    def origin(self) -> str:
        """Return the polled origin, by which the status is stored."""
        more = f" and {len(self.urls) - 1} more" if len(self.urls) > 1 else ""
        return f"{self.urls[0]}{more}"

    def _none_answered(self, unanswered: Sequence[Reject]) -> IngestError:
        of = f"none of {len(self.urls)} targets gave metrics: " if len(self.urls) > 1 else ""
        return IngestError(f"{self.name}: {of}{unanswered[0].reason}")

    def _record(self, data: bytes) -> None:
        try:
            with self.record_to.open("ab") as file:  # type: ignore[union-attr]
                file.write(data)
        except OSError as error:
            raise IngestError(
                f"{self.record_to}: scrapes cannot be recorded ({error.strerror}); see record_to."
            ) from error

    def _fetched(self) -> Iterator[list[Page | Reject]]:
        """Yield each target's page, or why there is none: first of those that answer at once.

        A target that failed the last time is asked after the others, so that it takes no turn of
        theirs.
        """
        first = self._endpoint(self.urls[0])
        urls = sorted(self.urls, key=self._failed.__contains__)
        self._failed.clear()
        with (
            limited_client(
                first.tls(),
                self.parallel,
                auth=first.basic(),
                headers={**ACCEPT, **first.headers()},
            ) as client,
            ThreadPoolExecutor(self.parallel, thread_name_prefix="scrape") as scrapers,
        ):
            waiting = {url: scrapers.submit(self._page, client, url) for url in urls}
            for patience_s in (PROMPT_S, None):
                wait(waiting.values(), patience_s)
                found = {
                    url: waiting.pop(url) for url in urls if url in waiting and waiting[url].done()
                }
                self._failed.update(
                    url for url, answer in found.items() if isinstance(answer.result(), Reject)
                )
                yield [found[url].result() for url in self.urls if url in found]

    def _page(self, client: httpx.Client, url: str) -> Page | Reject:
        target = httpx.URL(url)
        target = target.copy_with(path="/metrics") if target.path in ("", "/") else target
        try:
            text = self._text(client, target)
        except httpx.TimeoutException:
            reason = f"it did not answer within {self.timeout_s:g} s"
        except httpx.HTTPError as error:
            reason = f"it cannot be reached ({error})"
        except _UnansweredError as error:
            reason = str(error)
        else:
            return Page(str(target), text)
        return Reject(None, f"{target}: {reason}.", str(target))

    def _text(self, client: httpx.Client, url: httpx.URL) -> bytes:
        with within(self.timeout_s), client.stream("GET", url) as answer:
            if answer.status_code in (401, 403):
                raise _UnansweredError(
                    f"it denies access ({answer.status_code}); check the password"
                )
            if answer.status_code != 200:
                raise _UnansweredError(f"it answers with status {answer.status_code}, expected 200")
            try:
                text = body(answer, self.answer_max_bytes)
            except TooLargeAnswerError:
                raise _UnansweredError(
                    f"it sends more than {self.answer_max_bytes} bytes; see answer_max_bytes"
                ) from None
            except httpx.TimeoutException:
                raise _UnansweredError(f"it sent only a part within {self.timeout_s:g} s") from None
        if are_of_cr(text):
            text = text.replace(b"\r", b"\n")
        if text.count(b"\n") - text.count(b"\n#") > self.answer_max_series:
            raise _UnansweredError(f"it sends over {self.answer_max_series:,} series")
        if not self.pages.recognises(text[:HEAD_BYTES]):
            raise _UnansweredError(f"it answers, but with no metrics of {self.pages.metrics_of}")
        return text

    def _endpoint(self, url: str) -> Endpoint:
        return Endpoint(url=url, **self.credentials())


def _by_target(
    rejects: Sequence[Reject], texts: Sequence[bytes], pages: Sequence[Page]
) -> Iterator[Reject]:
    """Yield the rejects with the line of their own page, whose URL the reason begins with."""
    starts = list(accumulate((text.count(b"\n") for text in texts), initial=1))
    for reject in rejects:
        line = reject.line or 1
        page = bisect_right(starts, line) - 1
        own_line = line - starts[page]  # the mark before the page is ours
        yield Reject(own_line, f"{pages[page].url}: {reject.reason}", reject.content)
