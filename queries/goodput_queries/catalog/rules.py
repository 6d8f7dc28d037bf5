"""Rules of findings: a folder each, with its text and settings, its select and its cases.

`rules/<rule>/rule.toml` has what the rule means, what to do, and its thresholds. Its rows are
those of its `rule.sql`, or of the mart that it names as its family, which finds several rules in
one pass. How views and tables are made of the folders: `queries/README.md`.
"""

import csv
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from goodput_queries import packages
from goodput_queries.errors import RuleError

LOSSES = "loss_findings"  # the family of losses of the ledger, which `marts.findings` reads itself
EVERY_RULE = "every_rule()"
TEXTS = ("kind", "severity", "title", "meaning", "found_by", "action", "fix", "owner", "effort")
PLACES = ("page", "target")
SEVERITIES = ("page", "ticket", "note")  # the most severe first
CHOICES = {
    "severity": SEVERITIES,
    "owner": ("operations", "team"),
    "effort": ("minutes", "hours", "days"),
    "target": ("node", "job", "cluster", "subject"),
    "returns": ("all", "interval", "excess", "steady", "pauses", "none"),
}
# what a reader does with a device, a node or a run cannot be taken back: its rule says when not to
ACTS = re.compile(
    r"\b(release|drain|repair|replace|return the node|exchange|reset|restart the job|stop the run|"
    r"do without|scale|add a replica|move jobs|end the session|buy|kill)\b",
    re.IGNORECASE,
)
ACTING_FIXES = ("drain_node", "repair_node", "repair_link", "release_gpus", "return_node")
CONDITIONS = ("holds_when", "forbidden_when")
SPOKEN = ("action_after", "no_rate", *CONDITIONS)
OPTIONAL = (
    *("returns", "family", "categories", "least_share", "is_state", "merged_into", "thresholds"),
    *("severity_when", "note_below"),
    *SPOKEN,
)
# what a finding does, as the column `effect` of a select says it; `over` is of findings that closed
OVER = "over"
EFFECTS = {
    "allocated": "where a job had GPUs of it when it began",
    "awaited": "where jobs wait for its GPUs",
    "gang": "where a gang stands that is large enough",
    "late": "where an answer is late and none has failed",
    "long": "where it lasts long enough",
    "minor": "where the vendor asks for nobody, or errors were corrected",
    "no_data": "where there is no data for long enough",
    "tested": "once the node has passed its tests since",
    "unconfirmed": "where the evidence does not confirm it",
    OVER: "once it is over",
}
SMALL_MS, SMALL_SHARE = "finding_ticket_ms", "finding_ticket_share"
CASES = ("fires", "quiet")
# how often findings of a rule were right in tests: `python -m tests.findings --out` writes it
RATES = files("goodput_queries") / "sql" / "reference" / "finding_rates.csv"
# columns of a rule's select and of a family, with the types that they have in the union
REQUIRED = {
    "cluster": "varchar", "start_at": "timestamp", "end_at": "timestamp", "confidence": "varchar",
    "evidence": "varchar",
}  # fmt: skip
SUBJECT = {
    "node": "varchar", "gpu_uuid": "varchar", "run_key": "varchar", "gpu_ms": "bigint",
    "cost": "double",
}  # fmt: skip
OF_A_FAMILY = {"effect": "varchar", "is_over": "boolean", "what_to_do": "varchar"}
OF_ONE_RULE = {"team": "varchar", "detail": "varchar", "cause": "varchar"}
COLUMNS = REQUIRED | SUBJECT | OF_A_FAMILY | OF_ONE_RULE


@dataclass(frozen=True)
class Threshold:
    """A limit of a rule, with its unit and the reason for its value."""

    name: str
    value: float
    unit: str
    why: str


@dataclass(frozen=True)
class Merge:
    """The loss that is one finding with another finding where both are about one thing.

    by: `run`: of one run, where the loss is at least half of the finding's GPU time; `node`: of one
    node, where it lasts at least half of the finding's time; `GPU`: of one GPU in one run.
    is_cause: the finding says what to do about the loss.
    """

    rule: str
    by: str
    is_cause: bool = False


@dataclass(frozen=True)
class Rule:
    """A rule: its texts by key, where its rows come from, its own thresholds.

    texts: `action_after` is what to do once it is over, empty where that makes no difference;
    `no_rate` why tests cannot measure it, empty where they could

    family: the mart that has its rows; sql: its own select; categories: those of the ledger whose
    time is its loss, `category/phase` where it is of one phase; least_share: the threshold of the
    share from which a loss is a finding, None: any share. severity_when: the severity by effect.
    note_below: the threshold of the GPU time under which it is a note, None: no time is too small.
    is_state: a loss that is over once its GPUs are in another category.
    """

    name: str
    texts: Mapping[str, str]
    family: str | None
    sql: str | None
    categories: tuple[str, ...]
    least_share: str | None
    severity_when: Mapping[str, str]
    note_below: str | None
    is_state: bool
    merged_into: tuple[Merge, ...]
    thresholds: tuple[Threshold, ...]

    @property
    def acts(self) -> bool:
        """Say whether its action does something that cannot be taken back."""
        return self.texts["fix"] in ACTING_FIXES or ACTS.search(self.texts["action"]) is not None

    @property
    def view(self) -> str:
        """Return the name of the mart that its own select makes."""
        return f"rule_{self.name}"


@cache
def rules() -> tuple[Rule, ...]:
    """Return the rules by name; raise RuleError for a folder that is not complete or not known."""
    folders = (f for part in packages.in_each("rules") for f in part.iterdir() if f.is_dir())
    by_name = sorted(folders, key=lambda f: f.name)
    found = tuple(read(folder) for folder in by_name if not folder.name.startswith("__"))
    check_together(found)
    return found


@cache
def rates() -> dict[str, dict[str, tuple[int, int]]]:
    """Return by rule and confidence how many findings of the tests were right, and of how many.

    Without a confidence ('') it is how many of the cases of the rule were found.
    """
    found: dict[str, dict[str, tuple[int, int]]] = {}
    for row in csv.DictReader(RATES.read_text("utf-8").splitlines()):
        counts = int(row["right_count"]), int(row["total_count"])
        found.setdefault(row["rule"], {})[row["confidence"]] = counts
    return found


def _right_ratio(rule: str) -> str:
    """Return the share of the rule's findings that were right, as a literal of SQL."""
    counts = [count for confidence, count in rates().get(rule, {}).items() if confidence]
    total = sum(of for _, of in counts)
    return f"{sum(right for right, _ in counts) / total:.4f}" if total else "null"


def read(folder: Traversable) -> Rule:
    """Return the rule of a folder; raise RuleError, which names what is wrong with it."""
    name = folder.name
    try:
        settings = tomllib.loads((folder / "rule.toml").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RuleError(f"rule {name}: the folder has no rule.toml.") from None
    except tomllib.TOMLDecodeError as error:
        raise RuleError(f"rule {name}: rule.toml: {error}.") from None
    known = (*TEXTS, *PLACES, *OPTIONAL)
    if unknown := sorted(settings.keys() - set(known)):
        raise RuleError(f"rule {name}: {unknown[0]!r} is none of the keys {', '.join(known)}.")
    file = folder / "rule.sql"
    rule = Rule(
        name,
        _texts(name, {"returns": "none", **settings}) | _spoken(name, settings),
        settings.get("family"),
        file.read_text(encoding="utf-8") if file.is_file() else None,
        _categories(name, settings),
        settings.get("least_share", "finding_min_share") or None,
        _severity_when(name, settings),
        settings.get("note_below", SMALL_MS) or None,
        settings.get("is_state", False),
        tuple(_merge(name, one) for one in settings.get("merged_into", [])),
        tuple(_threshold(name, *item) for item in settings.get("thresholds", {}).items()),
    )
    is_loss = rule.family == LOSSES or name in {merge.rule for merge in rule.merged_into}
    if rule.categories and not is_loss:
        raise RuleError(f"rule {name}: it has categories, and its family is not {LOSSES}.")
    if rule.acts and not all(rule.texts[key] for key in CONDITIONS):
        raise RuleError(f"rule {name}: its action needs {' and '.join(CONDITIONS)}.")
    if rule.sql is None and rule.family is None:
        raise RuleError(f"rule {name}: it has neither a rule.sql nor a family.")
    for kind in CASES:
        if not (folder / "cases" / f"{kind}.toml").is_file():
            raise RuleError(f"rule {name}: it has no case in cases/{kind}.toml.")
    return rule


def _texts(name: str, settings: Mapping[str, Any]) -> dict[str, str]:
    found = {}
    for key in (*TEXTS, *PLACES, "returns"):
        text = settings.get(key)
        if not isinstance(text, str) or not text.strip():
            raise RuleError(f"rule {name}: the text of {key!r} is missing.")
        if text not in CHOICES.get(key, (text,)):
            raise RuleError(f"rule {name}: {key} is {text!r}, not {' or '.join(CHOICES[key])}.")
        found[key] = text
    return found


def _spoken(name: str, settings: Mapping[str, Any]) -> dict[str, str]:
    found = {key: settings.get(key, "") for key in SPOKEN}
    for key, text in found.items():
        if not isinstance(text, str):
            raise RuleError(f"rule {name}: {key} is no text.")
    return found


def _categories(name: str, settings: Mapping[str, Any]) -> tuple[str, ...]:
    found = settings.get("categories", [])
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise RuleError(f"rule {name}: categories is no list of names.")
    return tuple(found)


def _severity_when(name: str, settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the severity by effect; of a rule that can be a page also that of a closed finding."""
    found = settings.get("severity_when", {})
    if not isinstance(found, dict):
        raise RuleError(f"rule {name}: severity_when is no table of a severity by effect.")
    for effect, severity in found.items():
        if effect not in EFFECTS:
            raise RuleError(f"rule {name}: effect {effect!r} is none of {', '.join(EFFECTS)}.")
        if severity not in SEVERITIES:
            raise RuleError(f"rule {name}: severity_when has {severity!r}, which is no severity.")
    page = SEVERITIES[0]
    if page in (settings["severity"], *found.values()) and found.get(OVER, page) == page:
        raise RuleError(
            f"rule {name}: it can be a page, and severity_when does not say what once it is over."
        )
    return found


def _merge(name: str, given: object) -> Merge:
    keys = given.keys() if isinstance(given, dict) else set()
    if not isinstance(given, dict) or not {"rule", "by"} <= keys <= {"rule", "by", "is_cause"}:
        raise RuleError(f"rule {name}: merged_into needs tables of rule and by, or is_cause too.")
    if given["by"] not in {"run", "node", "GPU"}:
        raise RuleError(f"rule {name}: it is merged by {given['by']!r}, not by run, node or GPU.")
    return Merge(**given)


def _threshold(name: str, threshold: str, given: object) -> Threshold:
    of = f"rule {name}: threshold {threshold}"
    if not isinstance(given, dict) or given.keys() - {"value", "unit", "why"}:
        raise RuleError(f"{of} has a value, a unit and why, and nothing else.")
    value = given.get("value")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RuleError(f"{of} has no value that is a number.")
    for key in ("unit", "why"):
        if not isinstance(given.get(key), str) or not given[key].strip():
            raise RuleError(f"{of} has no {key}.")
    return Threshold(threshold, float(value), given["unit"], given["why"])


def check_together(found: Iterable[Rule]) -> None:
    """Raise RuleError for what two rules claim, and for a loss that is no rule."""
    owners: dict[str, str] = {}
    for rule in found:
        claimed = [f"threshold {threshold.name}" for threshold in rule.thresholds]
        for claim in (*claimed, *(f"category {category}" for category in rule.categories)):
            if (other := owners.setdefault(claim, rule.name)) != rule.name:
                raise RuleError(f"rule {rule.name}: {claim} is one of rule {other} already.")
    losses = {rule.name for rule in found if rule.family == LOSSES or rule.categories}
    for rule in found:
        for merge in rule.merged_into:
            if merge.rule not in losses:
                raise RuleError(
                    f"rule {rule.name}: {merge.rule!r}, into which it is merged, is no loss."
                )


def check_columns(rule: str, columns: Iterable[str]) -> None:
    """Raise RuleError where the select of a rule lacks a column, or has one of no meaning."""
    found = list(columns)
    for column in REQUIRED:
        if column not in found:
            raise RuleError(f"rule {rule}: rule.sql lacks the column {column}.")
    for column in found:
        if column not in COLUMNS:
            raise RuleError(
                f"rule {rule}: rule.sql has the column {column}, which findings do not have."
            )


def view_texts() -> dict[str, str]:
    """Return the SQL, with its header, of the view of each rule that has a select of its own."""
    return {
        rule.view: f"-- {rule.texts['title']}: rows of the rule {rule.name}.\n"
        f"-- grain: none\n-- evaluated: first\n{rule.sql}"
        for rule in rules()
        if rule.sql is not None
    }


def with_every_rule(sql: str) -> str:
    """Return SQL in which `every_rule()` is the union of the rows of all rules but losses.

    Each view is read once, however many rules it finds.
    """
    if EVERY_RULE not in sql:
        return sql
    typed = ", ".join(f"null::{kind} as {name}" for name, kind in COLUMNS.items())
    selects = [f"select null::varchar as rule, {typed} where false"]
    selects += [
        f"select '{rule.name}' as rule, * from marts.{rule.view}"
        for rule in rules()
        if rule.sql is not None
    ]
    of_family = ", ".join(map(quoted, ("rule", *REQUIRED, *SUBJECT, *OF_A_FAMILY)))
    selects += [
        f"select columns(lambda name: name in ({of_family})) from marts.{family}"
        for family in families()
    ]
    union = "\n    union all by name\n    ".join(selects)
    return sql.replace(EVERY_RULE, f"(\n    {union}\n)")


def families() -> list[str]:
    """Return the marts that find several rules in one pass, without the losses of the ledger."""
    return sorted({r.family for r in rules() if r.family is not None} - {LOSSES})


OF_REFERENCE = (
    *("merged_into", "least_share", "categories"),
    *("severity_when", "note_below_ms", "note_below_share", "is_state", "right_ratio"),
)


def reference_table() -> str:
    """Return the select of `reference.finding_rules`: a row for each rule."""
    keys = (*TEXTS, *PLACES, "returns", "action_after")
    rows = []
    for rule in rules():
        values = [rule.name, *(rule.texts[key] for key in keys)]
        merges = ", ".join(
            f"{{rule: {quoted(m.rule)}, same: {quoted(m.by)}, is_cause: {str(m.is_cause).lower()}}}"
            for m in rule.merged_into
        )
        merges = f"[{merges}]::struct(rule varchar, same varchar, is_cause boolean)[]"
        share = "0" if rule.least_share is None else f"threshold('{rule.least_share}')"
        losses = f"[{', '.join(map(quoted, rule.categories))}]::varchar[]"
        small = f"threshold('{rule.note_below}')" if rule.note_below else "0"
        small_share = f"threshold('{SMALL_SHARE}')" if rule.note_below == SMALL_MS else "0"
        when = ", ".join(f"{quoted(k)}: {quoted(v)}" for k, v in rule.severity_when.items())
        rows.append(
            f"({', '.join(map(quoted, values))}, {merges}, {share}::double, {losses}, "
            f"map {{{when}}}::map(varchar, varchar), {small}::double, {small_share}::double, "
            f"{str(rule.is_state).lower()}, {_right_ratio(rule.name)}::double)"
        )
    columns = ", ".join(("rule", *keys, *OF_REFERENCE))
    return "select * from (values\n" + ",\n".join(rows) + f"\n) as rules ({columns})"


def quoted(text: str) -> str:
    """Return a text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"
