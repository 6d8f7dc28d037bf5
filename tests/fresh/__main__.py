"""`make fresh`: clone, the two commands of the README, the wheel, its extras, the documents.

Each environment has what the project itself asks for and nothing else.
"""

import argparse
import os
import re
import shutil
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.fresh import commands, documents
from tests.fresh.steps import StepFailedError, Steps, plain_environment

ROOT = Path(__file__).parents[2]
SESSION = "sample_data/h200x4-a"
DAY = "2026-11-20"  # of the recorded session
PIP = ("-m", "pip", "--disable-pip-version-check", "--quiet")


def supported_pythons():
    """Return the oldest and the newest Python that are here and that the project names."""
    found = [path for minor in declared_minors() if (path := _path(minor)) is not None]
    return found[:1] + found[1:][-1:]


def declared_minors():
    """Return the minor versions of Python 3 in the project's classifiers, ascending."""
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    named = (re.fullmatch(r"Programming Language :: Python :: 3\.(\d+)", c) for c in classifiers)
    return sorted(int(one[1]) for one in named if one)


def _path(minor):
    name = f"python3.{minor}"
    if sys.version_info[:2] == (3, minor) and sys.prefix == sys.base_prefix:
        return sys.executable
    installed = sorted(Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/{name}"))
    if installed:  # the command of this name on the path may be pyenv's, which asks for a choice
        return str(installed[-1])
    return shutil.which(name)


class Newcomer:
    """A person with a clone, a home directory of their own and a folder for environments.

    Packages are installed by pip where a newcomer installs them, else by uv: the same ones, in a
    tenth of its time.
    """

    def __init__(self, folder, clone, steps):
        """Take an empty folder, and where the clone is or, where nothing is, is to be."""
        self.folder = folder
        self.clone = clone
        self.env = plain_environment(folder / "home")
        self.steps = steps
        self.uv = folder / "environments" / "uv" / "bin" / "uv"

    def check_all(self):
        """Do all steps, of which two at a time; raises StepFailedError of the first that fails."""
        if not self.clone.exists():
            self._clone()
        oldest, *others = supported_pythons()
        with ThreadPoolExecutor(1) as pool:  # while the packages of the first command come
            self.tools = pool.submit(self._tools, oldest)
            self.steps.side_by_side(lambda: self._two_commands(others), self._with_pip)

    def _tools(self, python):
        """Return the Python of an environment as a newcomer makes one, and the wheel."""
        ours = self.folder / "environments" / "pip" / "bin" / "python"
        commands.run([python, "-m", "venv", ours.parents[1]], **self._here)
        commands.run([ours, *PIP, "install", "--target", self.uv.parents[1], "uv"], **self._here)
        return ours, self._wheel()

    def _two_commands(self, pythons):
        """Run the README's first command, and then the wheel's with other versions."""
        self._demo()
        _, wheel = self.tools.result()
        for python in pythons:
            name = commands.run([python, "--version"], **self._here).strip().replace(" ", "-")
            with self.steps.step(f"{name}: install the wheel") as seen:
                ours = self._environment(name, python, wheel)
                seen.append(self._packages(ours))
            self._commands(ours)
        with self.steps.step("lowest versions of dependencies") as seen:
            lowest = ["--resolution", "lowest-direct", "-r", self.clone / "pyproject.toml"]
            ours = self._environment("lowest", sys.executable, *lowest)
            self._install(ours, "--no-deps", wheel)
            seen.append(self._packages(ours))
        self._commands(ours)

    def _with_pip(self):
        """Install the wheel as a newcomer does, run what documents show, then with the extras."""
        ours, wheel = self.tools.result()
        with self.steps.step("pip install of the wheel") as seen:
            commands.run([ours, *PIP, "install", "--no-compile", wheel], **self._here)
            seen.append(self._packages(ours))
        self._commands(ours)
        site = self._documents(ours)
        self._lake(ours, wheel, site)
        self._ray(ours, wheel)

    def _clone(self):
        with self.steps.step("git clone") as seen:
            commands.run(["git", "clone", "-q", "--no-hardlinks", ROOT, self.clone], **self._here)
            seen.append(f"{sum(1 for _ in self.clone.iterdir())} entries")

    def _demo(self):
        with (
            self.steps.step("make demo") as seen,
            commands.serving(["make", "demo"], cwd=self.clone, env=self.env, timeout_s=600) as url,
        ):
            seen.append("the page answers")
            self.tools.result()  # the browser's environment is made by uv
            seen.append(self._headline(url))

    def _headline(self, url):
        """Return what a browser shows of the first page, or why none was asked."""
        names = ("chromium-headless-shell", "chromium", "chromium-browser")
        chromium = next(filter(None, map(shutil.which, names)), None)
        if chromium is None:
            return "not looked at: Chromium is not installed"
        driver = self._environment("browser", sys.executable, "playwright>=1.60")
        see = ROOT / "tests" / "fresh" / "see.py"
        return commands.run([driver, see, url, chromium], **self._here).strip()

    def _wheel(self):
        with self.steps.step("wheel") as seen:
            build = [self.uv, "build", "--quiet", "--wheel", "--out-dir", self.folder / "dist"]
            commands.run(build, cwd=self.clone, env=self.env)
            (wheel,) = (self.folder / "dist").glob("*.whl")
            seen.append(f"{wheel.name}, {wheel.stat().st_size / 1e6:.1f} MB")
        return wheel

    @property
    def _here(self):
        return {"cwd": self.folder, "env": self.env}

    def _environment(self, name, python, *packages):
        """Return the Python of a new environment with packages."""
        folder = self.folder / "environments" / name
        commands.run([self.uv, "venv", "--quiet", "--python", python, folder], **self._here)
        self._install(folder / "bin" / "python", *packages)
        return folder / "bin" / "python"

    def _install(self, ours, *what):
        commands.run([self.uv, "pip", "install", "--quiet", "--python", ours, *what], **self._here)

    def _packages(self, ours):
        listed = commands.run([self.uv, "pip", "freeze", "--python", ours], **self._here)
        return f"{len(listed.splitlines())} packages"

    def _commands(self, ours):
        name, goodput = ours.parent.parent.name, ours.with_name("goodput")
        site = self.folder / f"site-{name}"
        site.mkdir()
        session = ["auto", self.clone / SESSION, "--cluster", "lab", "--timezone", "UTC"]
        for words in (
            ["--help"],
            ["ingest", *session],
            ["ingest", "rates", self.clone / "sample_data" / "rates.csv"],
            ["check"],
            ["ledger"],
            ["report", "--date", DAY, "--out", site / "report"],
        ):
            with self.steps.step(f"{name}: goodput {words[0]}") as seen:
                printed = commands.run([goodput, *words], cwd=site, env=self.env)
                seen.append(f"{len(printed.splitlines())} lines")
        for words in (["serve"], ["demo", "--gpus", "0", "--dir", site / "demo"]):
            with (
                self.steps.step(f"{name}: goodput {words[0]}") as seen,
                commands.serving(
                    [goodput, *words, "--port", "0"], cwd=site, env=self.env, timeout_s=300
                ) as url,
            ):
                seen.append(f"{len(commands.get(url)):,} characters of a page")

    def _documents(self, ours):
        """Run what the documents show; return the folder in which they ran."""
        folder, session = self.folder / "documents", self.clone / SESSION
        site = documents.Site(folder, ours.parent, self.env, session)
        site.prepare()
        for name in documents.DOCUMENTS:
            with self.steps.step(name) as seen:
                text = (self.clone / name).read_text(encoding="utf-8")
                seen.append(f"{documents.run_commands(site, text)} commands")
                seen.append(f"{documents.run_python(site, name, text)} examples in Python")
        return site

    def _lake(self, ours, wheel, site):
        goodput, lake = ours.with_name("goodput"), self.folder / "lake"
        with self.steps.step("a lake without its extra") as seen:
            create = [goodput, "lake", "create", "--lake", lake]
            answer = commands.run(create, **self._here, exit_codes=(1,))
            seen.append(" ".join(answer.split()))
        with self.steps.step("the extra lake") as seen:
            self._install(ours, f"{wheel}[lake]")
            commands.run(create, **self._here)
            loaded = ["--lake", lake, "--cluster", "lab", "--timezone", "UTC"]
            ingest = [goodput, "ingest", "slurm", self.clone / SESSION / "sacct.txt", *loaded]
            commands.run(ingest, **self._here)
            seen.append("created and loaded")
        with self.steps.step("docs/lake.md") as seen:
            text = (self.clone / "docs" / "lake.md").read_text(encoding="utf-8")
            seen.append(f"{documents.run_commands(site, text, has_lake=True)} commands")

    def _ray(self, ours, wheel):
        goodput = ours.with_name("goodput")
        with self.steps.step("the extra ray") as seen:
            self._install(ours, f"{wheel}[ray]")
            build = [goodput, "build", "--db", "of-lake.duckdb", "--lake", self.folder / "lake"]
            commands.run([*build, "--engine", "ray", "--workers", "1"], **self._here)
            commands.run([goodput, "check", "--db", "of-lake.duckdb"], **self._here)
            seen.append("built from a lake by a worker, balanced")


def main():
    """Do the steps in a temporary folder, which is removed if all of them pass."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m tests.fresh")
    parser.add_argument("--here", action="store_true", help="this checkout is as cloned")
    is_here = parser.parse_args().here
    os.chdir(ROOT)
    folder = Path(tempfile.mkdtemp(prefix="goodput-fresh-"))
    steps = Steps()
    try:
        Newcomer(folder, ROOT if is_here else folder / "clone", steps).check_all()
    except StepFailedError as error:
        sys.exit(f"failed after {steps.are_passed} steps: {error}\n(left in {folder})")
    print(f"{steps.are_passed} passed, 0 failed", flush=True)  # noqa: T201
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
