r"""A profile: the log format of a trainer as a TOML file, checked when it is loaded.

name = "my-trainer"
marks = ['my_trainer v\d']                 # one of these in the first 64 KiB recognises the log
hints = ["it "]                            # a line that is read contains one of these texts
prefix = '(?P<time>\S+ \S+) INFO '         # before the pattern of each line
[[line]]
means = "step"
pattern = 'it (?P<step>\d+): loss \S+, (?P<step_ms>[\d.]+) ms'
[[example]]
timezone = "UTC"
text = "2026-08-20 14:03:11,482 INFO it 120: loss 2.31, 402.5 ms"
expected = [{event = "step", step = 120, dur_s = 0.4025}]

Patterns are Python's, tried in order; the first that is found in a line says what it means. Named
groups are values, each with its unit (`GROUPS`); `fields` are patterns of values that may stand
anywhere in the line. `docs/log-profiles.md` has all keys.
"""

import re
import tomllib
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

import msgspec

from goodput_queries.errors import IngestError

PHASES = {
    "save": "ckpt_save",
    "restore": "restore",
    "evaluation": "eval",
    "initialisation": "init",
}
Meaning = Literal[
    "start",
    "end",
    "training",
    "epoch",
    "step",
    "loss",
    "save_begin",
    "save_end",
    "save",
    "restore_begin",
    "restore_end",
    "restore",
    "evaluation_begin",
    "evaluation_end",
    "evaluation",
    "initialisation",
    "durable",
    "upload",
    "failure",
    "metric",
    "nothing",
]
TIMES = {"time", "time_utc", "epoch_s", "clock"}
GROUPS = {  # a number, but for texts
    "step": "number of the step; without it the one that a line `training` named",
    "epoch": "number of the epoch",
    "steps_of_epoch": "steps of an epoch; with `epoch`, `step` is the step in it",
    "steps_of_bar": "steps of a progress bar that has run for `seconds`; a full one is of an epoch",
    "samples_done": "samples of the epoch that are done, where no step is counted",
    "samples_of_epoch": "samples of an epoch, whose first line, after a line `epoch`, is of a step",
    "step_s": "seconds of each step",
    "step_ms": "milliseconds of each step",
    "steps_per_s": "steps in a second",
    "tokens": "tokens of a step, all GPUs",
    "samples": "samples of a step, all GPUs",
    "tokens_per_s": "tokens in a second, all GPUs",
    "gpu_tokens_per_s": "tokens in a second, one GPU",
    "gpu_tflops_per_s": "TFLOP in a second, one GPU",
    "loss": "training loss; without it what stands behind a word such as loss or train_loss",
    "mfu_percent": "model FLOPs utilisation, %",
    "seconds": "length of a save, restore, evaluation or initialisation; also as 1:02:03",
    "milliseconds": "the same in milliseconds",
    "ran_ms": "how long an operation had run when it failed, milliseconds",
    "reporter": "text: who writes; lines of others than the first one are left out",
    "message": "text: what failed",
    "time": "text: local time, as 2026-08-20 14:03:11,482",
    "time_utc": "text: the same in UTC",
    "epoch_s": "seconds since 1970",
    "year": "of a local time, also in two digits; without it the year of the lines before",
    "month": "of a local time",
    "day": "of a local time",
    "clock": "text: of a local time, 14:03:11.482",
}


MARKS = "a pattern of `marks`"
IN_BRACES = re.compile(r"\{(\w+)\}")


class Shared(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """What the readers of all logs share: a reader is copied for each poll of its log."""

    def __deepcopy__(self, _memo: dict[int, Any]) -> Self:
        """Return itself."""
        return self


class LineForm(Shared, frozen=True):
    """A form of lines and what such a line means.

    has_prefix: the profile's prefix stands before the pattern. first_step, first_epoch: what the
    log calls the first one; numbers of durable saves begin so where steps were read. repeats: the
    number of the step before is another line of that step. durable: the save that ends is durable;
    `pending`: if no `upload` follows before the next step or save. once: the group of a rising
    number, of which the first line counts. is_end: the job ends with this failure. message, kind:
    texts with groups in braces. extra: groups that are kept with the event. defaults: groups that
    a line may lack.
    """

    means: Meaning
    pattern: str
    has_prefix: bool = True
    first_step: Literal[0, 1] = 1
    first_epoch: Literal[0, 1] = 0
    repeats: bool = False
    durable: bool | Literal["pending"] = False
    kind: str | None = None
    message: str = ""
    once: str = ""
    is_end: bool = False
    extra: tuple[str, ...] = ()
    defaults: dict[str, str] = {}
    fields: dict[str, str] = {}

    @property
    def phase(self) -> str | None:
        """Return the phase of the job that the line is about; None: about none."""
        return PHASES.get(self.means.partition("_")[0])

    @cached_property
    def of_fields(self) -> dict[str, re.Pattern[str]]:
        """The patterns of `fields`, each with one group."""
        return {name: re.compile(pattern) for name, pattern in self.fields.items()}


class AlmostForm(Shared, frozen=True):
    """What a line of another release or a cut line looks like, and what one that is read has."""

    pattern: str
    looks_like: str
    has: str

    @cached_property
    def form(self) -> re.Pattern[str]:
        """The pattern, compiled."""
        return re.compile(self.pattern)

    @property
    def reason(self) -> str:
        """Return why such a line is rejected."""
        return f"looks like {self.looks_like}, which has {self.has}; this line has not"


class Example(Shared, frozen=True):
    """Lines and the events that they give: of each expected event the fields that are named."""

    text: str
    expected: tuple[dict[str, Any], ...]
    timezone: str | None = None


class Profile(Shared, frozen=True):
    """The log format of a trainer.

    documentation: where its lines are described. marks_min: how many marks recognise a log.
    is_fallback: read only where no other format is marked. label_first: a collector's time counts
    before one without a year. durability: the log can say that a save is durable.
    """

    name: str
    marks: tuple[str, ...]
    hints: tuple[str, ...]
    line: tuple[LineForm, ...]
    documentation: str = ""
    prefix: str = ""
    marks_min: int = 1
    is_fallback: bool = False
    label_first: bool = False
    durability: bool = False
    almost: tuple[AlmostForm, ...] = ()
    example: tuple[Example, ...] = ()

    @cached_property
    def forms(self) -> tuple[tuple[LineForm, re.Pattern[str]], ...]:
        """Each form of lines with its whole pattern."""
        return tuple(
            (form, re.compile(self.prefix * form.has_prefix + form.pattern)) for form in self.line
        )

    @cached_property
    def mark(self) -> re.Pattern[bytes]:
        """What makes a log recognisable, in its first bytes."""
        return re.compile("|".join(f"(?:{one})" for one in self.marks).encode())

    @property
    def has_steps(self) -> bool:
        """Say whether lines of this format are steps."""
        return any(form.means == "step" for form in self.line)

    @property
    def is_undated(self) -> bool:
        """Say whether no line of this format prints a time."""
        return not any(TIMES & whole.groupindex.keys() for _, whole in self.forms)


def load(path: Path) -> Profile:
    """Return the profile in a TOML file; raises IngestError naming the key that is wrong."""
    try:
        return loads(path.read_text("utf-8"), str(path))
    except OSError as error:
        raise IngestError(f"{path}: cannot be read ({error.strerror}).") from error
    except UnicodeDecodeError as error:
        raise IngestError(f"{path}: this is not TOML ({error}).") from error


def loads(text: str, origin: str) -> Profile:
    """Return the profile in a text; raises IngestError naming the key that is wrong."""
    try:
        profile = msgspec.convert(tomllib.loads(text), Profile)
    except tomllib.TOMLDecodeError as error:
        raise IngestError(f"{origin}: this is not TOML ({error}).") from error
    except msgspec.ValidationError as error:
        raise IngestError(f"{origin}: {error}.") from error
    for problem in _problems(profile):
        raise IngestError(f"{origin}: {problem}.")
    return profile


def _problems(profile: Profile) -> list[str]:
    """Return what is wrong with the patterns and groups of a profile."""
    found = []
    for place, pattern in _patterns(profile):
        try:
            re.compile(pattern)
            if place == MARKS:  # looked for in bytes, which know fewer forms
                re.compile(pattern.encode())
        except re.error as error:
            found.append(f"{place} is no pattern ({error})")
    if found:
        return found
    is_step_named = any(f.means == "training" and "step" in w.groupindex for f, w in profile.forms)
    for number, (form, whole) in enumerate(profile.forms, 1):
        place = f"line {number} ({form.means})"
        groups = {*whole.groupindex, *form.fields, *form.defaults}
        if form.once and form.once not in groups:
            found.append(f"{place}: `once` names {form.once}, which is no group of it")
        used = {*form.extra, form.once, *IN_BRACES.findall(f"{form.kind}{form.message}")}
        found += [
            f"{place}: {name} is no known group and not in `extra`; known are {', '.join(GROUPS)}"
            for name in sorted(groups - GROUPS.keys() - used)
        ]
        is_named = form.means == "step" and is_step_named
        is_counted = groups >= {"samples_done", "samples_of_epoch"}
        is_named = is_named or (form.means == "step" and is_counted)
        if form.means in ("step", "epoch") and form.means not in groups and not is_named:
            found.append(f"{place}: it has no group `{form.means}`")
        is_length = form.phase is not None and "_" not in form.means
        if is_length and not groups & {"seconds", "milliseconds"}:
            found.append(f"{place}: it has no group `seconds` or `milliseconds`")
        found += [
            f"{place}: the pattern of field {name} needs one group"
            for name, field in form.of_fields.items()
            if field.groups != 1
        ]
    return found


def _patterns(profile: Profile) -> list[tuple[str, str]]:
    """Return every pattern of a profile with its place."""
    return [
        *((MARKS, mark) for mark in profile.marks),
        ("`prefix`", profile.prefix),
        *(
            pair
            for number, form in enumerate(profile.line, 1)
            for pair in (
                (f"the pattern of line {number}", profile.prefix * form.has_prefix + form.pattern),
                *((f"field {name} of line {number}", text) for name, text in form.fields.items()),
            )
        ),
        *(("a pattern of `almost`", almost.pattern) for almost in profile.almost),
    ]
