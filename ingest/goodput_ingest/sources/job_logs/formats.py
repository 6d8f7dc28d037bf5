"""The log formats that are known: classes of their own, profiles, profiles of the site."""

import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, Self

import msgspec

from goodput_ingest.site_files import site_files
from goodput_ingest.sources.job_logs.error_text import ErrorText
from goodput_ingest.sources.job_logs.events import LogFormat
from goodput_ingest.sources.job_logs.hf_trainer import HfTrainer
from goodput_ingest.sources.job_logs.megatron import Megatron
from goodput_ingest.sources.job_logs.nemo import Nemo
from goodput_ingest.sources.job_logs.profiles.profile import AlmostForm, Profile, load
from goodput_ingest.sources.job_logs.profiles.reading import ProfiledLog
from goodput_ingest.sources.job_logs.torchrun import Torchrun
from goodput_ingest.sources.job_logs.torchtitan import Torchtitan

OF_CLASSES: Final = (Megatron, Torchtitan, Nemo, HfTrainer, Torchrun)
STEPLESS: Final = {Torchrun.name, ErrorText.name}
PLAIN: Final = "plain"  # the profile of loops of no known trainer
STEP_MAX_CHARS: Final = 1_000
FOLDER: Final = Path(str(files("goodput_ingest.sources.job_logs")))
ALMOST: Final = msgspec.convert(
    tomllib.loads((FOLDER / "almost.toml").read_text("utf-8"))["almost"], tuple[AlmostForm, ...]
)
"""Lines that are almost of a format that is a class."""
ALMOST_HINTS: Final = ("consumed samples", "TFLOP/s/GPU", "saved checkpoint")


@dataclass(frozen=True)
class Format:
    """A log format: how a log of it is recognised, and what reads one.

    marks: what makes a log recognisable, `marks_min` times in its first bytes. hints: substrings of
    which every line that is read contains one. has_steps: it reads steps. is_fallback: it is read
    only where no other format with steps is marked. is_undated: its lines print no time.
    """

    name: str
    marks: re.Pattern[bytes]
    hints: tuple[str, ...]
    new: Callable[[], LogFormat]
    has_steps: bool = False
    is_fallback: bool = False
    is_undated: bool = False
    marks_min: int = 1
    almost: tuple[AlmostForm, ...] = ()

    def __deepcopy__(self, _memo: dict[int, Any]) -> Self:
        """Return itself: the readers of all logs share it, and each is copied for a poll."""
        return self

    def is_in(self, text: bytes) -> bool:
        """Say whether a log's beginning bears the marks of this format."""
        found = self.marks.finditer(text)
        return all(next(found, None) is not None for _ in range(self.marks_min))


def of_profile(profile: Profile) -> Format:
    """Return the format that a profile describes."""
    return Format(
        profile.name,
        profile.mark,
        profile.hints,
        lambda: ProfiledLog(profile),
        profile.has_steps,
        profile.is_fallback,
        profile.is_undated,
        profile.marks_min,
        profile.almost,
    )


def read_again() -> None:
    """Read the profiles again: the site's folder is another one."""
    formats.cache_clear()
    _profiles.cache_clear()


@cache
def formats() -> tuple[Format, ...]:
    """Return every format; a profile of the site replaces ours of the same name.

    Of a line with two forms of a step, that of the earlier format counts.
    """
    found = {
        one.name: Format(one.name, one.marks, one.hints, one, one.name not in STEPLESS)
        for one in OF_CLASSES
    }
    for profile in _profiles():
        found[profile.name] = of_profile(profile)
    last = ErrorText
    return (*found.values(), Format(last.name, last.marks, last.hints, last))


@cache
def _profiles() -> tuple[Profile, ...]:
    builtin = sorted((FOLDER / "profiles").glob("*.toml"))
    paths = (*builtin, *site_files("profiles", "*.toml"))
    return tuple(map(load, paths))


def looks_like_step(text: str) -> bool:
    """Say whether a line looks like a step that a loop of no known trainer prints."""
    text = text[:STEP_MAX_CHARS]
    plain = next(one for one in _profiles() if one.name == PLAIN)
    return any(
        form.means == "step" and pattern.search(text) is not None for form, pattern in plain.forms
    )
