"""What tests share: an empty database, and surroundings that are not the tester's own."""

import contextlib
import gc
import re
import shutil
import ssl
import subprocess
from importlib.util import find_spec
from pathlib import Path

import duckdb
import hypothesis
import pytest
from tests.made_once import made_once
from tests.tiers import Costs, costs
from xdist.scheduler import LoadFileScheduling

from goodput_app.process.store import use_store
from goodput_app.settings import settings
from goodput_ingest.sources.job_events.job_events import JobEvents
from goodput_queries import packages
from goodput_queries.database import LocalStore

TESTS = Path(__file__).parent
SAMPLE_DATA = TESTS.parent / "sample_data"

pytest.register_assert_rewrite("tests.tables")  # whose failures show both sides

gc.disable()  # while the tests are collected: all of it stays


# packages that may be left out, and were: the tests of the others pass without them
OPTIONAL = {  # -> modules of tests that need them, besides those that import them
    "goodput_formats_extra": [],
    "goodput_lake": ["tests.queries.lake"],
    "goodput_serving": ["tests.queries.serving"],
    "goodput_synthetic": [
        "tests.fleets", "tests.fuzz", "tests.evidence_over_time", "tests.demo_weeks",
        "tests.queries.made_up_fleet", "tests.queries import made_up_fleet",
    ],
}  # fmt: skip
MISSING = [
    name
    for package, modules in OPTIONAL.items()
    for name in (package, *modules)
    if find_spec(package) is None
]


def pytest_ignore_collect(collection_path):
    """Leave out the tests of packages that are not installed: modules that import them."""
    module = collection_path / "conftest.py" if collection_path.is_dir() else collection_path
    if MISSING and module.suffix == ".py" and module.exists():
        text = module.read_text(encoding="utf-8")
        if any(re.search(rf"^from {name}\b", text, re.MULTILINE) for name in MISSING):
            return True
    return None


@pytest.fixture
def all_packages():
    """Skip a test of the repository as a whole where a package is left out."""
    if MISSING:
        pytest.skip(f"not installed: {', '.join(OPTIONAL.keys() & set(MISSING))}")


def _of_installed_packages(items):
    """Return the tests without cases of formats and commands of packages that are left out."""
    gone = [
        point.name
        for group in (packages.SOURCES, packages.COMMANDS)
        for point in packages.declared(group)
        if not packages.is_there(point)
    ]
    of_gone = re.compile(rf"\[(.*\W)?({'|'.join(gone)})\b")
    return [item for item in items if of_gone.search(item.nodeid) is None]


def pytest_configure(config):
    """Give each test its tier and its limit of time."""
    config.pluginmanager.register(Costs(), "costs")


class TogetherWithTheirDatabase(LoadFileScheduling):
    """Give the tests of a module to one process, and all modules whose tests share a database.

    One of many small clusters takes half a minute to load and build: no second process does it.
    """

    def _split_scope(self, nodeid):
        return _shared_by(TESTS.parent / super()._split_scope(nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Return what gives tests to processes, unless another way is asked for."""
    return TogetherWithTheirDatabase(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_collection_modifyitems(items):
    """Begin with what one process does longest: modules that share a database.

    Those that are for a machine alone come by their cost, so that no process works alone at the
    end; of many short ones that order takes longer than the one of folders.
    """
    if MISSING:
        items[:] = _of_installed_packages(items)
    took = costs()

    def last(item):
        is_alone = item.get_closest_marker("machine") is not None
        return _shared_by(item.path) == str(item.path), -took[item.path] if is_alone else 0

    items.sort(key=last)


def _shared_by(path):
    from tests.queries.conftest import shared_by  # noqa: PLC0415 -- it imports tests.tables

    return shared_by(path)


def pytest_collection_finish():
    """Leave the tests out of searches for garbage: with them, each takes 0.2 s."""
    gc.enable()
    gc.freeze()


hypothesis.settings.register_profile("untimed", deadline=None)  # a busy machine fails no test
hypothesis.settings.load_profile("untimed")


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory):
    """Give a database with all tables and views and no rows, to be copied."""
    return made_once(tmp_path_factory, "empty", lambda path: LocalStore(path).close())


@pytest.fixture(scope="session", autouse=True)
def databases_have_one_thread():
    """Give databases one thread, unless a test asks for more: a process a core runs tests."""
    opened = duckdb.connect

    def connect(*given, config=None, **options):
        return opened(*given, config={"threads": 1, **(config or {})}, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duckdb, "connect", connect)
        if "goodput_lake" not in MISSING:
            from goodput_lake import attached  # noqa: PLC0415 -- a package of its own
            from goodput_lake.tasks.engines import InProcess  # noqa: PLC0415

            one = InProcess(workers=1, threads=1)
            patch.setattr(attached, "InProcess", lambda _: one)
        yield


@pytest.fixture(scope="session")
def new_store(empty_database, tmp_path_factory):
    """Return a maker of databases in a folder of their own: empty, or copies of another."""

    def make(threads=1, *, copy_of=None):
        path = tmp_path_factory.mktemp("store") / "fleet.duckdb"
        shutil.copyfile(copy_of or empty_database, path)
        opened = LocalStore(path, threads=threads)
        with opened.cursor() as cursor:  # what is thrown away need not be written out at its end
            cursor.execute("pragma disable_checkpoint_on_shutdown")
        return opened

    return make


@pytest.fixture(scope="session")
def filled(empty_database, tmp_path_factory):
    """Return a maker of databases that a function fills once for all tests; to be copied."""

    def make(name, fill, *, copy_of=None):
        def draft(path):
            shutil.copyfile(copy_of or empty_database, path)
            with contextlib.closing(LocalStore(path, threads=1)) as store:
                fill(store)

        return made_once(tmp_path_factory, name, draft)

    return make


def _stores(new_store):
    """Return a maker of databases, as `new_store` does, that go at the end."""
    made = []

    def make(**options):
        made.append(new_store(**options))
        return made[-1]

    yield make
    for store in made:
        store.close()
        shutil.rmtree(Path(store.path).parent)


module_store = pytest.fixture(_stores, scope="module", name="module_store")  # with the module
own_store = pytest.fixture(_stores, name="own_store")  # with the test
session_store = pytest.fixture(_stores, scope="session", name="session_store")


@pytest.fixture(scope="session")
def recorded_demo(tmp_path_factory):
    """Give the demo of the recorded session alone, built; to be copied by who opens it."""
    demo = pytest.importorskip("goodput_synthetic.demo")

    def make(path):
        demo.demo_database(path.parent, sample_data=SAMPLE_DATA).replace(path)

    return made_once(tmp_path_factory, f"demo-{demo.digest(SAMPLE_DATA)}", make)


@pytest.fixture
def store(own_store):
    """Give an empty database of the test's own."""
    return own_store()


@pytest.fixture(autouse=True)
def untouched_surroundings(monkeypatch):
    """Keep the tester's own settings and database out, and forget those of the test after it."""
    monkeypatch.delenv("GOODPUT_DB", raising=False)
    monkeypatch.delenv("GOODPUT_LAKE", raising=False)
    monkeypatch.delenv("GOODPUT_CONFIG", raising=False)
    settings.cache_clear()
    yield
    settings.cache_clear()
    use_store(None)


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """Give a certificate of 127.0.0.1, that nobody but its own file vouches for, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("the program openssl is not installed")
    folder = tmp_path_factory.mktemp("certificate")
    files = folder / "server.pem", folder / "server.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
         "-out", files[0], "-keyout", files[1]],
        check=True,
        capture_output=True,
    )  # fmt: skip
    return files


@pytest.fixture(scope="session")
def tls(certificate):
    """Give a server's side of TLS with that certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    return context


@pytest.fixture
def configured(tmp_path, monkeypatch):
    """Give what writes the settings of the site, which hold from then on."""

    def written(text):
        path = tmp_path / "goodput.toml"
        path.write_text(text)
        monkeypatch.setenv("GOODPUT_CONFIG", str(path))
        settings.cache_clear()

    return written


@pytest.fixture
def breaking(monkeypatch):
    """Let the reader of job events break down in files called bad; return which ones it read."""
    extract, read = JobEvents.extract, list[str]()

    def breaks_with(error):
        def broken(self):
            read.append(self.path.name)
            yield from extract(self)
            if "bad" in self.path.name:
                raise error

        monkeypatch.setattr(JobEvents, "extract", broken)
        return read

    return breaks_with
