"""Settings as they are found: a text each, or the reason why it is unknown."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

READ_MAX_BYTES = 65_536
NUMBER = re.compile(r"\d+")
UNREAD = re.compile(r"unknown \(.*\)", re.DOTALL)


@dataclass
class Found:
    """Settings by name.

    root: below it are `proc`, `sys` and `etc`. unknown: why a setting could not be read, by name.
    """

    root: Path = Path("/")
    settings: dict[str, str] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)

    def note(self, name: str, read: Callable[[], str]) -> None:
        """Note the text that `read` returns; its OSError or ValueError is why it is unknown."""
        self.note_each(name, lambda: {name: read()})

    def note_each(self, name: str, read: Callable[[], Mapping[str, str]]) -> None:
        """Note several settings by their names; where they cannot be read, `name` is unknown."""
        try:
            self.settings.update(read())
        except OSError as error:
            self.unknown[name] = error.strerror or str(error)
        except ValueError as error:
            self.unknown[name] = str(error)

    def file(self, name: str, path: str, take: Callable[[str], str] = str.strip) -> None:
        """Note what `take` makes of the text of a file."""
        self.note(name, partial(_taken, self.root / path, take))

    def of_each(self, name: str, values: Mapping[str, str]) -> None:
        """Note a setting of several things by what it is of; see `unread` and `grouped`."""
        if all(UNREAD.fullmatch(value) for value in values.values()):
            reasons = sorted({value[9:-1] for value in values.values()}) or ["there is none"]
            self.unknown[name] = "; ".join(reasons)
        else:
            self.settings[name] = grouped(values)

    def files(
        self, name: str, files: Mapping[str, Path], take: Callable[[str], str] = str.strip
    ) -> None:
        """Note a setting of several things, each in a file: by what it is of."""
        read = {key: known(partial(_taken, path, take)) for key, path in files.items()}
        self.of_each(name, read)

    def paths(self, pattern: str) -> list[Path]:
        """Return the files of a pattern, numbers in their order."""
        return sorted(self.root.glob(pattern), key=lambda path: by_number(str(path)))


def text(path: Path) -> str:
    """Return the beginning of a file; raises OSError."""
    with path.open("rb") as file:
        return file.read(READ_MAX_BYTES).decode("utf-8", "replace")


def unread(reason: str) -> str:
    """Return the text of a value among others that could not be read."""
    return f"unknown ({reason})"


def known(read: Callable[[], str]) -> str:
    """Return what `read` returns, or that it is unread."""
    try:
        return read()
    except OSError as error:
        return unread(error.strerror or str(error))


def grouped(values: Mapping[str, str]) -> str:
    """Return one text for values by key: the value that all have, else each with its keys.

    Numbers that follow each other are a range: `performance: 0-6; powersave: 7`.
    """
    if len(set(values.values())) == 1:
        return next(iter(values.values()))
    keys: dict[str, list[str]] = {}
    for key in sorted(values, key=by_number):
        keys.setdefault(values[key], []).append(key)
    return "; ".join(f"{value}: {_ranges(of_value)}" for value, of_value in keys.items())


def by_number(name: str) -> list[int | str]:
    """Return what sorts names by the numbers in them: `cpu2` before `cpu10`."""
    numbers = [int(number) for number in NUMBER.findall(name)]
    return [part for pair in zip(NUMBER.split(name), [*numbers, 0], strict=True) for part in pair]


def _ranges(keys: Iterable[str]) -> str:
    runs: list[list[str]] = []
    for key in keys:
        if runs and key.isdecimal() and runs[-1][-1] == str(int(key) - 1):
            runs[-1].append(key)
        else:
            runs.append([key])
    return ",".join(run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _taken(path: Path, take: Callable[[str], str]) -> str:
    return take(text(path))
