"""Two weeks of two teams, of which the second is worse: a run is lost and a node stands idle.

Times are seconds from the start of the evidence, a Friday; all costs 2 dollars a GPU-hour.
"""

from tests.queries.conftest import START
from tests.queries.findings import given

from goodput_queries.scope import Scope

HOUR, WEEK = 3_600, 604_800
MONDAY = 64 * HOUR  # 2027-01-18 00:00 UTC
SECOND, END = MONDAY + WEEK, MONDAY + 2 * WEEK + 6 * HOUR
WORLD = [
    {"node": "a", "gpus": 2, "cpus": 8},
    {"node": "b", "gpus": 2, "cpus": 8},
    {"watched": END},
    {"job": "1", "on": "a", "start": MONDAY, "end": SECOND, "account": "nlp"},
    {"steps": "1", "start": MONDAY, "to": SECOND, "length": HOUR},
    {"job": "2", "on": "b", "start": MONDAY, "end": SECOND, "account": "vision"},
    {"steps": "2", "start": MONDAY, "to": SECOND, "length": HOUR},
    {"job": "3", "on": "a", "start": SECOND, "end": SECOND + WEEK // 2, "account": "nlp",
     "state": "FAILED"},
    {"steps": "3", "start": SECOND, "to": SECOND + WEEK // 2, "length": HOUR},
    {"job": "4", "on": "a", "start": SECOND + WEEK // 2, "end": SECOND + WEEK, "account": "nlp"},
    {"steps": "4", "start": SECOND + WEEK // 2, "to": SECOND + WEEK, "length": HOUR},
    {"state": "down", "node": "b", "start": SECOND + 48 * HOUR, "end": SECOND + 50 * HOUR},
    {"state": "drained", "node": "b", "start": SECOND + 50 * HOUR, "end": SECOND + 60 * HOUR},
]  # fmt: skip


def load(made):
    """Load the weeks into a cluster (`Evidence`) and build."""
    given.load(made, WORLD)
    made.load("rates", [{"price_per_gpu_h": 2.0}])
    made.load("budgets", [{"account": "nlp", "cost_per_month": 900.0}])
    made.store.build()


def week_of(number):
    """Return the scope of one of the weeks, from 0."""
    start_ms = round(START.timestamp() * 1000) + 1000 * (MONDAY + number * WEEK)
    return Scope(from_ms=start_ms, to_ms=start_ms + 1000 * WEEK)
