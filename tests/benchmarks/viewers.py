"""People and programs at one server: pages are drawn while `/api/v1` answers at a steady rate.

    goodput demo --gpus 2000 --live --port 8600      # or any other server, on cores of its own
    python -m tests.benchmarks.viewers http://127.0.0.1:8600 --viewers 20 --rate 200 --seconds 60

A request is timed from when it was due, so that one that waits for those before it is late. Each
question is asked once before the first is timed. Each person opens a page, looks at it for THINK_S
and opens the next, no two at the same moment. Prints a line before people come and one with them:
answers, those that were no answer, and the clock's percentiles.
"""

import argparse
import http.client
import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

from tests.app.page_session import page_session

THINK_S = 15.0
SENDERS = 64  # requests on their way at once, at most
PAGES = ("", "runs", "findings", "fleet", "nodes", "cost", "waste", "network", "health", "report")
ASKED = (
    "/api/v1/views/marts.runs/rows?from=now-24h&limit=100",
    "/api/v1/views/marts.findings/rows?from=now-24h&limit=100",
    "/api/v1/views/marts.ledger_by_category/rows?from=now-24h",
    "/api/v1/queries/gpu_time_by_team_and_day/rows?from=now-7d",
    "/api/v1/views/marts.nodes/rows?from=now-24h&limit=100",
)


def ask(address, due):
    """Send one sender's requests as they are due; return the seconds and the status of each."""
    connection, found = http.client.HTTPConnection(address, timeout=120), []
    for moment, path in due:
        time.sleep(max(0.0, moment - time.monotonic()))
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            answer.read()
            status = answer.status
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            status = type(error).__name__
        found.append((time.monotonic() - moment, status))
    return found


def answers(url, rate, seconds):
    """Ask at a rate for some seconds; return the seconds and the status of each request."""
    first = time.monotonic() + 1
    due = [(first + n / rate, ASKED[n % len(ASKED)]) for n in range(int(rate * seconds))]
    with ThreadPoolExecutor(SENDERS) as senders:
        parts = [due[n::SENDERS] for n in range(SENDERS)]
        every = list(senders.map(lambda part: ask(urlsplit(url).netloc, part), parts))
    return list(itertools.chain.from_iterable(every))


def look(url, person, of, is_over, drawn):
    """Open one page after the other until it is over; append seconds and errors to `drawn`."""
    with page_session(url) as session:
        is_over.wait(THINK_S * person / of)
        for number in itertools.count(person):
            began = time.monotonic()
            _, errors = session.draw(PAGES[number % len(PAGES)], "range=24h")
            drawn.append((time.monotonic() - began, errors))
            if is_over.wait(THINK_S):
                return


def line(name, seconds, problems):
    """Return a line of a kind of request: how many, those that failed, percentiles in ms."""
    ordered = sorted(seconds)
    at = [ordered[min(len(ordered) - 1, len(ordered) * p // 100)] for p in (50, 95, 99, 100)]
    percentiles = ", ".join(f"{1000 * one:,.0f}" for one in at)
    return f"{name}: {len(seconds):,}, failed {problems:,}; 50, 95, 99, 100 % in {percentiles} ms"


def main():
    """Measure the server without people, then with them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url")
    parser.add_argument("--viewers", type=int, default=20)
    parser.add_argument("--rate", type=float, default=200, help="requests a second (200)")
    parser.add_argument("--seconds", type=float, default=60)
    given = parser.parse_args()
    ask(urlsplit(given.url).netloc, [(time.monotonic(), path) for path in ASKED])
    for viewers in (0, given.viewers):
        is_over, drawn = threading.Event(), []
        people = [
            threading.Thread(target=look, args=(given.url, person, viewers, is_over, drawn))
            for person in range(viewers)
        ]
        for person in people:
            person.start()
        asked = answers(given.url, given.rate, given.seconds)
        is_over.set()
        for person in people:
            person.join()
        failed = sum(status != http.HTTPStatus.OK for _, status in asked)
        print(line(f"{viewers} people, answers", [took for took, _ in asked], failed))  # noqa: T201 -- a program
        if drawn:
            errors = sum(bool(found) for _, found in drawn)
            print(line(f"{viewers} people, pages", [took for took, _ in drawn], errors))  # noqa: T201 -- a program


if __name__ == "__main__":
    main()
