"""Evidence for small made-up clusters, in seconds from a fixed start."""

import functools
import inspect
import itertools
import operator
import re
from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from tests.queries.loaders import START, START_MS, Evidence, at, is_time
from tests.tables import each

from goodput_queries.scope import EVERYTHING
from goodput_queries.storage import staged_views

__all__ = ("START", "START_MS", "Evidence", "at", "each", "is_time")  # tests import all from here
FOLDER = Path(__file__).parent
LOADS_OF_A_COPY = 10_000
MART = re.compile(r"\bmarts\.(\w+)( as \w+)?")
YIELDS = re.compile(r"^ +yield$", re.MULTILINE)  # of a test that is built together with others


@functools.cache
def _of_all_clusters(store, commits, view):
    """Return the table of a view's rows, made once for all clusters; None: they name no cluster."""
    name, table = f"marts.{view}", f"together.main.{view}_{commits}"
    with store.cursor() as cursor:
        cursor.execute("attach if not exists ':memory:' as together")
        select = staged_views.evaluate(cursor, f"from {name}", staged_views.named_in(name))
        cursor.execute(f"create table {table} as {select}")
        columns = [column for column, *_ in cursor.execute(f"describe {table}").fetchall()]
    return table if "cluster" in columns else None


@dataclass
class Cluster(Evidence):
    """One of several clusters in a database, which its test loads, yields to build, and reads.

    Marts show it alone; other tables are asked `where cluster = '<its name>'`. What differs
    without a cluster has names of its own: GPUs, communicators, processes (from `first_pid` on).
    """

    test: Generator[None] = field(init=False)
    error: Exception | None = None
    waiting: list[tuple[str, str, list[dict[str, Any]]]] = field(default_factory=list)

    def load(self, table, rows, source="test"):
        """Keep rows of a raw table until the next build."""
        self.waiting.append((table, source, rows))

    def call(self, *calls):
        """Load what methods load: their names, what they get by place and by name."""
        for name, given, named in calls:
            getattr(self, name)(*given, **named)

    def build(self):
        """Do nothing: a database is built for all of its clusters together."""

    def read(self, sql, scope=EVERYTHING):
        """Return the rows of a select; marts show this cluster alone."""
        if scope == EVERYTHING:
            sql = MART.sub(self._rows_of, sql)
        return self.store.read(sql, scope=replace(scope, cluster=self.name))

    def _rows_of(self, found):
        """Return what a select reads for a view: its rows of this cluster, where they name it."""
        table = _of_all_clusters(self.store, self.store.commits, found[1])
        rows = f"(from {table} where cluster = '{self.name}'){found[2] or f' as {found[1]}'}"
        return rows if table else found[0]

    def load_until_build(self):
        """Run the test up to its next `yield`; an error is kept for when the test is reported."""
        try:
            next(self.test, None)
        except Exception as error:  # it must not fail the tests of other clusters
            self.error = error

    def read_after_build(self):
        """Run the rest of the test."""
        if self.error is not None:
            raise self.error
        for _ in self.test:
            raise AssertionError("a test that yields more than once says how often: `builds`")


def build_together(store, name, clusters):
    """Load what waits: the first rows of a table from all clusters, then their second ones; build.

    name: of the loads, which no others of the database have
    """
    every = Evidence(store, name)
    loads = {}
    for cluster in clusters:
        count = Counter()
        for table, source, rows in cluster.waiting:
            count[table] += 1
            for row in rows:
                loads.setdefault((count[table], table, source), []).append(row)
        cluster.waiting.clear()
    for key in sorted(loads, key=operator.itemgetter(0)):
        every.load(key[1], loads[key], key[2])
    store.build()


def built_together(test):
    """Make the test of one that loads its `cluster`, yields where it is to be built, and reads it.

    A build costs the same for one small cluster and for fifty: all such tests of a subject share
    one database (`shared_by`), a cluster each.
    """

    @functools.wraps(test)
    def reported(cluster, **_):
        cluster.read_after_build()

    yields = YIELDS.findall(inspect.getsource(test))
    reported.builds = getattr(test, "builds", len(yields))  # type: ignore[attr-defined]
    return reported


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector, name, obj):
    """Take a test that yields as one of those that are built together."""
    if not (inspect.isgeneratorfunction(obj) and collector.funcnamefilter(name)):
        return None
    test = built_together(obj)
    setattr(collector.obj, name, test)
    return collector.ihook.pytest_pycollect_makeitem(collector=collector, name=name, obj=test)


def built_in(number):
    """Say in how many builds a test loads its cluster, at most, where yields do not show it."""

    def noted(test):
        test.builds = number
        return test

    return noted


def shown_by(cases, *, before=None, load=None, read=None, builds=1):
    """Make the test of a table: what is loaded (after `before`), what is read, what that gives.

    Its names say what a case shows. Read is SQL or a function of the cluster; in tables without it,
    `read`. With `load` a case has what that is given. With several builds it has what is loaded
    before each, and read after it; a comment says what cases have beside the usual.
    """

    @each({name: (case,) for name, case in cases.items()})
    @built_in(builds)
    def test(cluster, case):
        *given, expected = case
        asked = given.pop() if read is None else read
        loaders = given[0] if builds > 1 else given if load is None else [lambda c: load(c, *given)]
        found = []
        for loads in loaders:
            if before is not None and not found:
                before(cluster)
            loads(cluster)
            yield
            found.append(asked(cluster) if callable(asked) else cluster.read(asked).rows())
        of = expected(cluster) if callable(expected) else expected
        assert found == (of if builds > 1 else [of])

    return test


def read_from_world(cases):
    """Make the test of a table: SQL on the fixture `world`, its rows, its scope if it has one."""

    @each({name: (case,) for name, case in cases.items()})
    def test(world, case):
        sql, expected, scope = (*case, EVERYTHING)[:3]
        assert world.store.read(sql, scope=scope, is_kept=True).rows() == expected

    return test


@functools.cache
def shared_by(path):
    """Return whose database the tests of a module share, its path where it is their own.

    Tests that are `built_together` share that of their subject, such as `rules`, unless the module
    sets BUILT_ALONE: where what the whole database has, such as its latest reading, decides.
    """
    text = path.read_text()
    is_together = YIELDS.search(text) or " = shown_by(" in text
    if not path.is_relative_to(FOLDER) or not is_together or "BUILT_ALONE" in text:
        return str(path)
    return str(FOLDER / path.relative_to(FOLDER).parts[0])


@pytest.fixture(scope="session")
def databases_of_clusters(session_store):
    """Give the clusters of all tests that share a database, loaded and built, by node id."""
    made = {}

    def of(name, session):
        if name not in made:
            made[name] = {}  # what failed is not tried again for each test
            tests = (item for item in session.items if hasattr(item, "function"))
            together = (item for item in tests if hasattr(item.function, "builds"))
            items = [item for item in together if shared_by(item.path) == name]
            made[name] = _loaded_and_built(session_store(), items)
        return made[name]

    return of


def _loaded_and_built(store, items):
    found = {}
    for number, item in enumerate(items):
        cluster = found[item.nodeid] = Cluster(store, f"c{number}", first_pid=100 * (number + 1))
        given = item.callspec.params if hasattr(item, "callspec") else {}
        cluster.test = item.function.__wrapped__(cluster=cluster, **given)
    for number in range(max(item.function.builds for item in items)):
        for item in items:
            if number < item.function.builds:
                found[item.nodeid].load_until_build()
        build_together(store, f"build-{number}", found.values())
    return found


@pytest.fixture
def cluster(request, databases_of_clusters):
    """Return the cluster of a test that is `built_together` with others."""
    return databases_of_clusters(shared_by(request.path), request.session)[request.node.nodeid]


@pytest.fixture
def new_evidence(own_store):
    """Return a maker of clusters, empty or copies of `built` ones, that go at the end."""

    def make(threads=1, *, copy_of=None):
        made = Evidence(own_store(threads=threads, copy_of=copy_of))
        if copy_of is not None:  # what it has was loaded under the first numbers
            made._parts = itertools.count(LOADS_OF_A_COPY)
        return made

    return make


@pytest.fixture(scope="module")
def shared_evidence(module_store):
    """Return a cluster for a fixture that all tests of a module read, and none of them changes."""
    return Evidence(module_store())


def built_once(load):
    """Make the fixture of a cluster that this loads: built once, for all tests of a module."""

    @pytest.fixture(scope="module", name=load.__name__)
    def shared(module_store):
        evidence = Evidence(module_store())
        load(evidence)
        evidence.build()
        return evidence

    return shared


def built_file(load):
    """Make the fixture of the file of a cluster that this loads, built once; see `copy_of`."""

    @pytest.fixture(scope="module", name=load.__name__)
    def path(module_store):
        evidence = Evidence(module_store())
        load(evidence)
        return evidence.built()

    return path


def built_after(file, act):
    """Make the fixture of this fixture's file after one more act, and of what that returned."""

    @pytest.fixture(scope="module")
    def changed(request, module_store):
        evidence = Evidence(module_store(copy_of=_built(request, file)))
        found = act(evidence)
        return evidence.built(), found

    return changed


def _built(request, file):
    made = request.getfixturevalue(file)
    return made[0] if isinstance(made, tuple) else made


def copy_of(file):
    """Make the fixture of a cluster of the test's own: a copy of what this fixture has built."""

    @pytest.fixture
    def copy(request, new_evidence):
        return new_evidence(copy_of=_built(request, file))

    return copy


def store_of(file):
    """Make the fixture of a copy of this fixture's database, which all tests of a module read."""

    @pytest.fixture(scope="module")
    def store(request, module_store):
        return module_store(copy_of=_built(request, file))

    return store


@pytest.fixture
def evidence(new_evidence):
    """Return an empty cluster to load evidence into."""
    return new_evidence()


def steps(first, last, start, length=10.0, **more):
    """Return step events `first`..`last`, one after the other from second `start`."""
    return [
        {"event": "step", "step": k, "t": start + (k - first + 1) * length, "dur_s": length, **more}
        for k in range(first, last + 1)
    ]


def phase(name, start, end):
    """Return a declared phase."""
    return {"event": "phase", "phase": name, "t": end, "dur_s": end - start}


def durable(step, second):
    """Return the event that a checkpoint is complete."""
    return {"event": "ckpt.durable", "step": step, "t": second}


def printed(reported):
    """Return the same steps as a log prints them: a little late, without their length."""
    return [{"event": "step", "step": row["step"], "t": row["t"] + 0.4} for row in reported]
