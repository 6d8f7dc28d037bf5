"""`make fresh`: clone, the two commands of the README, the wheel, its extras, the documents.

Each environment has what the project itself asks for and nothing else.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path

from tests.fresh import commands, documents
from tests.fresh.pythons import supported_pythons
from tests.fresh.steps import StepFailedError, Steps, plain_environment

ROOT = Path(__file__).parents[2]
SESSION = "sample_data/h200x4-a"
DAY = "2026-11-20"  # of the recorded session
UV = ("-m", "uv", "pip", "install", "--quiet", "--python")  # as pip, in a tenth of its time
PIP = ("-m", "pip", "--disable-pip-version-check", "--quiet")


class Newcomer:
    """A person with a clone, a home directory of their own and a folder for environments."""

    def __init__(self, folder, steps):
        """Take an empty folder."""
        self.folder = folder
        self.clone = folder / "clone"
        self.env = plain_environment(folder / "home")
        self.steps = steps

    def check_all(self):
        """Do all steps; raises StepFailedError at the first that fails."""
        self._clone()
        self._demo()
        wheel = self._wheel()
        pythons = supported_pythons()
        for place, python in enumerate(pythons):
            installed = self._installed(python, wheel, is_by_pip=place == 0)
            self._commands(installed)
            if place == 0:
                site = self._documents(installed)
                self._lake(installed, wheel, site)
            if place == len(pythons) - 1:
                self._ray(installed, wheel)
        self._lowest(wheel)

    def _clone(self):
        with self.steps.step("git clone") as seen:
            commands.run(
                ["git", "clone", "--quiet", "--no-hardlinks", ROOT, self.clone],
                cwd=self.folder,
                env=self.env,
            )
            seen.append(f"{sum(1 for _ in self.clone.iterdir())} entries")

    def _demo(self):
        with (
            self.steps.step("make demo") as seen,
            commands.serving(["make", "demo"], cwd=self.clone, env=self.env, timeout_s=600) as url,
        ):
            seen.append("the page answers")
            seen.append(self._headline(url))

    def _headline(self, url):
        """Return what a browser shows of the first page, or why none was asked."""
        chromium = shutil.which("chromium") or shutil.which("chromium-browser")
        if chromium is None:
            return "not looked at: Chromium is not installed"
        driver = self._environment("browser", sys.executable)
        commands.run([driver, *PIP, "install", "playwright>=1.60"], cwd=self.folder, env=self.env)
        see = ROOT / "tests" / "fresh" / "see.py"
        return commands.run([driver, see, url, chromium], cwd=self.folder, env=self.env).strip()

    def _wheel(self):
        with self.steps.step("wheel") as seen:
            builder = self._environment("builder", sys.executable)
            built = self.folder / "dist"
            commands.run(
                [builder, *PIP, "wheel", "--no-deps", "--wheel-dir", built, "."],
                cwd=self.clone,
                env=self.env,
            )
            (wheel,) = built.iterdir()
            seen.append(f"{wheel.name}, {wheel.stat().st_size / 1e6:.1f} MB")
        return wheel

    def _environment(self, name, python):
        """Return the Python of a new environment."""
        folder = self.folder / "environments" / name
        if not folder.exists():
            commands.run([python, "-m", "venv", folder], cwd=self.folder, env=self.env)
        return folder / "bin" / "python"

    def _installed(self, python, wheel, *, is_by_pip):
        """Return the Python of an environment with the wheel alone."""
        version = commands.run([python, "--version"], cwd=self.folder, env=self.env).strip()
        with self.steps.step(f"{version}: install the wheel") as seen:
            ours = self._environment(version.replace(" ", "-"), python)
            if is_by_pip:
                install = [ours, *PIP, "install", "--no-compile", wheel]
                commands.run(install, cwd=self.folder, env=self.env)
            else:
                self._install(ours, wheel)
            seen.append(self._packages(ours))
        return ours

    def _install(self, ours, *what):
        uv = self.folder / "environments" / "uv" / "bin" / "python"
        if not uv.exists():
            self._environment("uv", sys.executable)
            commands.run([uv, *PIP, "install", "uv"], cwd=self.folder, env=self.env)
        commands.run([uv, *UV, ours, *what], cwd=self.folder, env=self.env)

    def _lowest(self, wheel):
        """Run the commands with the lowest versions that `pyproject.toml` allows."""
        with self.steps.step("lowest versions of dependencies") as seen:
            ours = self._environment("lowest", sys.executable)
            lowest = ["--resolution", "lowest-direct", "-r", self.clone / "pyproject.toml"]
            self._install(ours, *lowest)
            self._install(ours, "--no-deps", wheel)
            seen.append(self._packages(ours))
        self._commands(ours)

    def _packages(self, ours):
        listed = commands.run([ours, "-m", "pip", "freeze"], cwd=self.folder, env=self.env)
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
        site = documents.Site(
            self.folder / "documents", ours.parent, self.env, self.clone / SESSION
        )
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
            answer = commands.run(create, cwd=self.folder, env=self.env, exit_codes=(1,))
            seen.append(" ".join(answer.split()))
        with self.steps.step("the extra lake") as seen:
            self._install_extra(ours, wheel, "lake")
            commands.run(create, cwd=self.folder, env=self.env)
            loaded = ["--lake", lake, "--cluster", "lab", "--timezone", "UTC"]
            ingest = [goodput, "ingest", "slurm", self.clone / SESSION / "sacct.txt", *loaded]
            commands.run(ingest, cwd=self.folder, env=self.env)
            seen.append("created and loaded")
        with self.steps.step("docs/lake.md") as seen:
            text = (self.clone / "docs" / "lake.md").read_text(encoding="utf-8")
            seen.append(f"{documents.run_commands(site, text, has_lake=True)} commands")

    def _ray(self, ours, wheel):
        goodput, lake = ours.with_name("goodput"), self.folder / "lake"
        with self.steps.step("the extra ray") as seen:
            self._install_extra(ours, wheel, "ray")
            build = [goodput, "build", "--db", "of-lake.duckdb", "--lake", lake]
            commands.run(
                [*build, "--engine", "ray", "--workers", "1"], cwd=self.folder, env=self.env
            )
            check = [goodput, "check", "--db", "of-lake.duckdb"]
            commands.run(check, cwd=self.folder, env=self.env)
            seen.append("built from a lake by a worker, balanced")

    def _install_extra(self, ours, wheel, extra):
        self._install(ours, f"{wheel}[{extra}]")


def main():
    """Do the steps in a temporary folder, which is removed if all of them pass."""
    os.chdir(ROOT)
    folder = Path(tempfile.mkdtemp(prefix="goodput-fresh-"))
    steps = Steps()
    try:
        Newcomer(folder, steps).check_all()
    except StepFailedError as error:
        sys.exit(f"failed after {steps.are_passed} steps: {error}\n(left in {folder})")
    print(f"{steps.are_passed} passed, 0 failed", flush=True)  # noqa: T201
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
