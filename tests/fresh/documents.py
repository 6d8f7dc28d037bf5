"""Runs the commands and examples of the documentation as they stand there.

A block's lines that begin with `goodput` or `curl`, with or without a prompt, are commands. Each is
run in a folder that has what the documents name; those that need more than one machine are in
`ELSEWHERE` with the reason. A line of neither kind fails: a new command of a document runs.
"""

import contextlib
import re
import shlex
import shutil
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.fresh import commands
from tests.fresh.steps import StepFailedError

DOCUMENTS = (
    "README.md", "docs/connect.md", "docs/operate/backup.md", "docs/operate/job-reports.md",
    "docs/operate/replay.md", "docs/access.md", "docs/metrics.md", "docs/notifications.md",
    "docs/lake.md", "docs/job-events.md", "docs/api.md", "docs/python-api.md",
)  # fmt: skip
ELSEWHERE = {  # part of a command -> why it cannot run on one machine
    "s3://": "an object store",
    "--engine ray": "hosts of a Ray cluster",
}
OF_A_LAKE = ("--lake", "fleet.duckdb")  # parts of commands that need the extra `lake`
REFUSED = ("serve --address 0.0.0.0",)  # shown with the sentence that refuses them
SERVERS = ("serve", "replay", "demo")
EXIT_CODES = {"doctor": (0, 1), "notify": (0, 1)}  # 1: they found what is missing
PROMPT = re.compile(r"^(?:[\w-]*\$\s+)?(?=goodput |curl )")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SESSION_HOSTS = "https://goodput.example.org"


@dataclass(frozen=True)
class Site:
    """A folder with what the documents name, and the environment that runs them.

    bin: the folder of `goodput` and of its Python. sample: the recorded session.
    """

    folder: Path
    bin: Path
    env: Mapping[str, str]
    sample: Path

    def prepare(self):
        """Copy the files that the documents ingest to the places that they name."""
        self.folder.mkdir(parents=True)
        for name in ("sacct.txt", "nvml.jsonl.gz"):
            shutil.copyfile(self.sample / name, self.folder / name)
        (self.folder / "train.py").write_text("print('step 1')")
        for name in ("west", "east", "backup"):
            (self.folder / name).mkdir()
        for name in ("west", "east"):
            shutil.copyfile(self.sample / "sacct.txt", self.folder / name / "sacct.txt")

    def here(self, command):
        """Return a command with the places of the documents in this folder."""
        places = {
            "/var/lib/goodput/goodput.duckdb": "goodput.duckdb", "/var/log/": f"{self.folder}/",
            "/mnt/lake": f"{self.folder}/lake", "/backup": f"{self.folder}/backup",
            "sample_data/h200x4-a": str(self.sample),
        }  # fmt: skip
        for place, ours in places.items():
            command = command.replace(place, ours)
        return command


def commands_of(text):
    """Yield the commands of a document's blocks, without prompts and comments."""
    for kind, block in BLOCK.findall(text):
        if kind not in ("", "sh", "bash", "console"):
            continue
        for line in block.replace("\\\n", " ").splitlines():
            if PROMPT.match(line):
                yield re.split(r"\s+#\s", PROMPT.sub("", line))[0].strip()


def run_commands(site, text, *, has_lake=False):
    """Run the commands of a document; return how many. Raises StepFailedError.

    has_lake: those of a lake, for which the environment has the extra; else all others.
    """
    chosen = [
        command
        for command in commands_of(text)
        if not any(part in command for part in ELSEWHERE)
        and any(part in command for part in OF_A_LAKE) == has_lake
    ]
    for command in chosen:
        _run(site, command)
    return len(chosen)


def run_python(site, document, text):
    """Run the examples in Python of a document, in its order, as one program; return how many."""
    examples = [block for kind, block in BLOCK.findall(text) if kind == "python"]
    if not examples:
        return 0
    before = BEFORE.get(document, "")
    program = "\n".join([textwrap.dedent(before), *examples])
    with _served(site, is_needed=SESSION_HOSTS in program) as url:
        (site.folder / "example.py").write_text(program.replace(SESSION_HOSTS, url))
        commands.run([site.bin / "python", "example.py"], cwd=site.folder, env=site.env)
    return len(examples)


# what the reader of an example has already
BEFORE = {
    "docs/api.md": """
        import os
        os.environ["TOKEN"] = "none"
        """,
    "docs/job-events.md": """
        import contextlib, itertools, sys, types
        steps, batches = 3, itertools.count()
        load_checkpoint, save, train, pretrain = (lambda *_: 0,) * 4
        training = types.ModuleType("training")
        for name in ("train_step", "load_checkpoint", "save_checkpoint_and_time",
                     "evaluate_and_print_results"):
            setattr(training, name, lambda *_: None)
        megatron = types.ModuleType("megatron")
        of_training = types.ModuleType("megatron.training")
        of_training.get_args = lambda: types.SimpleNamespace(curr_iteration=0)
        of_training.training = training
        sys.modules |= {"megatron": megatron, "megatron.training": of_training}
        """,
}


def _run(site, command):
    words = shlex.split(site.here(command))
    if words[0] == "curl":
        with _served(site, is_needed=True) as url:
            asked = [word.replace(SESSION_HOSTS, url).replace("$TOKEN", "none") for word in words]
            printed = commands.run([*asked, "--fail-with-body"], cwd=site.folder, env=site.env)
        if '"rows"' not in printed:
            raise StepFailedError(f"{command}: {printed}")
        return
    called = [site.bin / words[0], *_with_our_backup(site, words[1:])]
    if command.partition(" ")[2] in REFUSED:
        commands.run(called, cwd=site.folder, env=site.env, exit_codes=(1,))
        return
    if words[1] in SERVERS:
        called += ["--port", "0"]
        with commands.serving(called, cwd=site.folder, env=site.env, timeout_s=120):
            return
    codes = EXIT_CODES.get(words[1], (0,))
    commands.run(called, cwd=site.folder, env=site.env, exit_codes=codes)


def _with_our_backup(site, words):
    """Return arguments with the backup that was made here, whose name has another time."""
    made = sorted((site.folder / "backup").glob("*.duckdb"))
    return [
        str(made[-1]) if made and re.search(r"/goodput-\d{8}T\d{6}Z\.duckdb$", word) else word
        for word in words
    ]


@contextlib.contextmanager
def _served(site, *, is_needed):
    if not is_needed:
        yield ""
        return
    command = [site.bin / "goodput", "serve", "--no-collect", "--port", "0"]
    with commands.serving(command, cwd=site.folder, env=site.env, timeout_s=120) as url:
        yield url
