"""The SQL files: their headers (what a row is, grain, columns) and the order of the build."""

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from importlib.resources.abc import Traversable

from goodput_queries import packages
from goodput_queries.catalog import rules, thresholds
from goodput_queries.catalog.header import Header, header, names

BASE_LAYERS = ("raw", "billing", "state")  # tables that no build can recompute, by their writer
BUILT_LAYERS = ("staging", "intermediate", "temp", "marts", "checks")
LAYERS = (*BASE_LAYERS, "reference", *BUILT_LAYERS)
FOLDERS = {"temp": "build_temp"}  # of layers whose folder has another name
TEMP_LAYER = "temp"  # tables of one connection, rebuilt for every build or pass
_SOURCE = re.compile(rf",\s*(?=(?:{'|'.join(LAYERS)})\.)")  # a condition may have commas, too
_COMMENT = re.compile(r"--[^\n]*")
_MACRO = re.compile(r"^create or replace macro (\w+)", re.MULTILINE)
_WORD = re.compile(r"\w+")
REFERENCE = re.compile(rf"\b({'|'.join(LAYERS)})\.(\w+)")


@dataclass(frozen=True)
class Model:
    """One SQL file: `layer.name`, its select (`create table` in base layers), and its header."""

    layer: str
    name: str
    sql: str
    header: Header
    columns: dict[str, str]

    @property
    def qualified_name(self) -> str:
        """Return `layer.name`, which is the name of the table or view."""
        return f"{self.layer}.{self.name}"

    @property
    def description(self) -> str:
        """Return what a row is."""
        return self.header.description

    @property
    def grain(self) -> list[str]:
        """Return the columns that identify a row."""
        return names(self._value("grain"))

    @property
    def keep(self) -> str | None:
        """Return which of two rows with one key stays: `replace`, or by which terms the larger."""
        return self._value("keep").partition(";")[0] or None

    @property
    def versions_of(self) -> list[str]:
        """Return the columns of which a row is a version, valid until the next one."""
        return self.header.names("keep", "versions of")

    @property
    def time(self) -> str | None:
        """Return the time by which its rows are stored and their loads are bounded."""
        return self.header.clause("times", "by")

    @property
    def observed(self) -> list[str]:
        """Return the columns with times of observation, which must be plausible."""
        return [*self.header.names("times", "by"), *self.header.names("times", "observed")]

    @property
    def planned(self) -> list[str]:
        """Return the columns with planned times, which may be in the future."""
        return self.header.names("times", "planned")

    @property
    def materialised(self) -> str | None:
        """Return how the stage is stored (`materialise.py`), None where it is a view."""
        way = self._value("materialised").partition(";")[0].partition(" ")[0]
        return None if way in {"", "inline", "by"} else way

    @property
    def is_of_ledger(self) -> bool:
        """Say whether its passes over hours are those of the ledger: larger than of readings."""
        return self._value("materialised").startswith("hourly of the ledger")

    @property
    def is_inline(self) -> bool:
        """Say whether a temporary stage is a view in the stage that reads it."""
        return self._value("materialised").startswith("inline")

    @property
    def is_written_by_code(self) -> bool:
        """Say whether Python writes its rows, instead of its select."""
        return self._value("materialised").startswith("by ")

    @property
    def is_stored(self) -> bool:
        """Say whether it is a table rather than a view."""
        return self.materialised is not None or self.is_written_by_code or self.layer == TEMP_LAYER

    @property
    def parts(self) -> int:
        """Return the largest number of input parts in which a temporary stage is computed."""
        return int((self.header.clause("materialised", "in") or "1").split()[0])

    @property
    def bounds(self) -> tuple[str, str] | None:
        """Return the columns that bound its intervals, by which its changed hours are found."""
        columns = names(self._value("change_tracking"))
        return (columns[0], columns[1]) if len(columns) == 2 else None

    @property
    def tracked_key(self) -> str | None:
        """Return the column by which its rows that differ are noted."""
        return self.header.clause("change_tracking", "by")

    @property
    def is_compared(self) -> bool:
        """Say whether rows are compared with the previous ones, so that equal hours stay valid."""
        return bool(self._value("change_tracking"))

    @property
    def is_compared_as_a_whole(self) -> bool:
        """Say whether one row that differs makes all that depends on it dirty."""
        return self._value("change_tracking") == "all"

    @property
    def sources(self) -> list[str]:
        """Return the tables of `skip_if_empty`: where none has rows the stage has none.

        Each is what follows a `from`: a table, or one `where` a condition holds.
        """
        text = self._value("skip_if_empty")
        return _SOURCE.split(text) if text else []

    @property
    def is_of_dirty_keys(self) -> bool:
        """Say whether its rows are those of dirty keys: none where `skip_if_empty` has none."""
        return self._value("skip_if_empty").startswith(f"{TEMP_LAYER}.")

    @property
    def is_staged_view(self) -> bool:
        """Say whether a query that reads this view finds it evaluated (`staged_views.py`)."""
        is_skipped = self.layer == "marts" and bool(self.sources) and not self.is_stored
        return is_skipped or self._value("evaluated") == "first"

    @property
    def access(self) -> str | None:
        """Return who may read it besides those who see all teams.

        `team`: who sees some teams, since no row is of another; `everyone`: it names no team's
        work; None: nobody.
        """
        return "everyone" if self.layer == "reference" else self._value("access") or None

    @property
    def reads(self) -> set[str]:
        """Return the tables it reads: those its SQL names and, of what code writes, its header."""
        return _read_by_model(self.sql) | set(self.header.names("materialised", "reads"))

    def select(self, parts: int = 1) -> str:
        """Return its SQL, for so many parts of its input where it has some."""
        numbered = [self.sql.replace("part_number()", str(part)) for part in range(parts)]
        return "\nunion all\n".join(f"({part})" for part in numbered) if parts > 1 else numbered[0]

    def _value(self, directive: str) -> str:
        return self.header.directives.get(directive, "")


def _read(layer: str, name: str, text: str) -> Model:
    text = thresholds.with_values(rules.with_every_rule(text))
    found = header(layer, name, text)
    columns = found.columns
    if layer in BASE_LAYERS:
        columns = {
            m[1]: m[2].strip()
            for m in re.finditer(r"^\s{4}(\w+)\s[^\n]*?--\s*(.*)$", text, re.MULTILINE)
        }
    return Model(layer, name, text, found, columns)


@cache
def of_layer(layer: str) -> dict[str, Model]:
    """Return the SQL files of a layer by name; those of rules are marts."""
    texts = {
        file.name.removesuffix(".sql"): file.read_text(encoding="utf-8")
        for folder in packages.in_each("sql", FOLDERS.get(layer, layer))
        for file in _sql_files(folder)
    }
    if layer == "marts":
        texts |= rules.view_texts()
    return {name: _read(layer, name, text) for name, text in sorted(texts.items())}


def _sql_files(folder: Traversable) -> Iterator[Traversable]:
    """Yield the SQL files of a folder and of the folders in it, one a subject."""
    for file in folder.iterdir():
        if file.is_dir():
            yield from _sql_files(file)
        elif file.name.endswith(".sql"):
            yield file


@cache
def base_tables() -> dict[str, Model]:
    """Return the tables of all base layers by name, which is unique among them."""
    return {name: m for layer in BASE_LAYERS for name, m in of_layer(layer).items()}


@cache
def reference_files() -> dict[str, str]:
    """Return the CSV facts by table name, with the path of each."""
    files = [f for folder in packages.in_each("sql", "reference") for f in folder.iterdir()]
    return {
        f.name.removesuffix(".csv"): str(f)
        for f in sorted(files, key=lambda f: f.name)
        if f.name.endswith(".csv") and f.name != thresholds.FILE
    }


@cache
def reference_tables() -> dict[str, str]:
    """Return the select of each reference table by name: its CSV, or what the rules say."""
    limits = ",\n".join(
        f"({rules.quoted(name)}, {value!r}::double, {rules.quoted(unit)}, {rules.quoted(why)})"
        for name, value, unit, why in thresholds.rows()
    )
    return {
        name: f"select * from read_csv({rules.quoted(file)}, header = true, all_varchar = false)"
        for name, file in reference_files().items()
    } | {
        "thresholds": f"select * from (values\n{limits}\n) as limits (name, value, unit, why)",
        "finding_rules": thresholds.with_values(rules.reference_table()),
    }


def macro_files() -> list[str]:
    """Return the texts of the scalar macros, each after those whose macros it calls."""
    files = [f for folder in packages.in_each("sql", "macros") for f in folder.iterdir()]
    texts = {str(f): thresholds.with_values(f.read_text("utf-8")) for f in files}
    defined_in = {macro: name for name, text in texts.items() for macro in _MACRO.findall(text)}
    called = {
        name: {defined_in[w] for w in _WORD.findall(_COMMENT.sub("", text)) if w in defined_in}
        for name, text in texts.items()
    }
    # sorted, so that the order is the same in every process
    order = TopologicalSorter({name: sorted(called[name] - {name}) for name in sorted(called)})
    return [texts[name] for name in order.static_order()]


@cache
def macros() -> dict[str, str]:
    """Return the definitions of the macros by name."""
    found: dict[str, str] = {}
    for text in macro_files():
        _, *parts = _MACRO.split(_COMMENT.sub("", text))  # name, text, name, text ...
        for name, body in zip(parts[::2], parts[1::2], strict=True):
            found[name] = found.get(name, "") + body
    return found


def with_macros(sql: str) -> str:
    """Return a select followed by the definitions of the macros that it calls, and these call."""
    known, called = macros(), set[str]()
    added = sql
    while more := (set(_WORD.findall(added)) & known.keys()) - called:
        called |= more
        added = "\n".join(known[name] for name in sorted(more))
        sql += added
    return sql


def tables_read(sql: str) -> set[str]:
    """Return the `layer.name` references in a select, and in the macros that it calls.

    Our SQL always writes the layer.
    """
    text = with_macros(_COMMENT.sub("", sql))
    return {f"{layer}.{name}" for layer, name in REFERENCE.findall(text)}


@cache  # each is asked for by all that read the model
def _read_by_model(sql: str) -> set[str]:
    return tables_read(sql)


@cache
def build_order() -> list[Model]:
    """Return staging to checks in an order in which each finds what it reads."""
    known = {m.qualified_name: m for layer in BUILT_LAYERS for m in of_layer(layer).values()}
    # sorted, so that the order is the same in every process
    graph = {name: sorted(_inputs(m, known) - {name}) for name, m in known.items()}
    return [known[name] for name in TopologicalSorter(graph).static_order()]


def _inputs(model: Model, known: Container[str]) -> set[str]:
    """Return the inputs of a model; temp.int_x is a draft of int_x."""
    found = {
        name.replace(f"{TEMP_LAYER}.", "intermediate.") if name not in known else name
        for name in model.reads
    }
    return {name for name in found if name in known}


@cache
def by_name() -> dict[str, Model]:
    """Return the models of `build_order` by qualified name."""
    return {m.qualified_name: m for m in build_order()}


def inputs(model: Model) -> frozenset[str]:
    """Return the models that a model reads, through views and temporary tables too."""
    return _inputs_of(model.qualified_name)


@cache
def _inputs_of(name: str) -> frozenset[str]:
    known = by_name()
    found: set[str] = set()
    wanted = _inputs(known[name], known)
    while wanted:
        found |= wanted
        passed = {n for n in wanted if known[n].layer == TEMP_LAYER or not known[n].is_stored}
        wanted = {t for n in passed for t in _inputs(known[n], known)} - found
    return frozenset(found)


@cache
def evidence(name: str) -> tuple[set[str], set[str]]:
    """Return the base tables and the stored stages that a stage is made of, through views too."""
    known = by_name()
    stored = {n for n in inputs(known[name]) if known[n].is_stored and known[n].layer != TEMP_LAYER}
    views = inputs(known[name]) - stored | {name}
    reads = set().union(*(known[view].reads for view in views))
    return {table for table in reads if table.split(".")[0] in BASE_LAYERS}, stored


def pass_tables(model: Model) -> list[Model]:
    """Return the temporary tables that an hourly stage reads, in the order of their making."""
    return _pass_tables_of(model.qualified_name)


@cache
def _pass_tables_of(name: str) -> list[Model]:
    found = _inputs_of(name)
    return [m for m in build_order() if is_drafted(m) and m.qualified_name in found]


def is_drafted(model: Model) -> bool:
    """Say whether it is a temporary table that its select makes."""
    return model.layer == TEMP_LAYER and not model.is_written_by_code


@cache
def is_of_a_pass(name: str) -> bool:
    """Say whether a temporary table belongs to a pass over some hours, not to the build."""
    return any(name in inputs(m) for m in build_order() if m.materialised == "hourly")


@cache
def of_readings() -> tuple[Model, ...]:
    """Return the hourly stages whose rows readings decide, in the order of the build."""
    return tuple(
        m
        for m in build_order()
        if m.materialised == "hourly"
        and m.layer == "intermediate"
        # segments of nodes are made of stages of readings
        and m.bounds is None
        and not m.is_of_ledger
    )


def of_the_same_pass(model: Model) -> list[Model]:
    """Return the stages of readings that read the temporary tables that this one reads, itself too.

    These tables are a pass over all readings: they are computed once for all these stages.
    """
    tables = pass_tables(model)
    if not tables or model not in of_readings():
        return [model]
    return [other for other in of_readings() if pass_tables(other) == tables]
