"""The run of a log: from its text before the first event, else from the file's name.

The file's name alone for the output that `goodput run` keeps (`NAME.out.log`); else the first of
these that is there:

1. Slurm's job id in the text, in its first 64 KiB and up to the line of the first event:
   `SLURM_JOB_ID=14` (or `SLURM_JOBID`) as in a dump of the environment, `slurmstepd: error: *** JOB
   14`, `srun --jobid 14`
2. `--run-id`
3. the pod of a container's log on its node (`/var/log/pods`, `/var/log/containers`), as `ml/exp-0`:
   logs of its restarts are attempts of one run
4. a Slurm job id in the file's name: `slurm-14.out`, `slurm-14_3.out`, `pretrain-4711.out`
5. the W&B run in whose folder it is (`run-20261127_184553-grymqhhh/files/output.log`), else the one
   whose name is in that part of the text
6. the file's name without its endings and the rank in it, else its folder's (of `RUN/log` RUN); of
   torchrun's folders (`RUN/attempt_0/3/stdout.log`) that of the run. The ranks of Paddle are
   `workerlog.0` and so on

It is what stands before the first event that counts, so that a log that is followed while it grows
has the same run as one that is read whole.
"""

import re
from pathlib import PurePath

from goodput_ingest.formats import files
from goodput_ingest.formats.files import Part
from goodput_ingest.formats.json_text.json_lines import printable
from goodput_ingest.formats.rotation import unrotated

RUN_ID_MAX_CHARS = 200
JOB_IN_TEXT = tuple(
    re.compile(pattern)
    for pattern in (
        rb"\bSLURM_JOB_?ID['\"]?[=: ]+['\"]?([1-9]\d{0,11}(?:_\d{1,9})?)\b",
        rb"slurmstepd: error: \*\*\* (?:JOB|STEP) ([1-9]\d{0,11})\b",
        rb"\bsrun --jobid[= ]([1-9]\d{0,11})\b",
    )
)
WANDB = re.compile(
    rb"wandb: Syncing run (\S{1,200})"
    rb"|wandb: Run data is saved locally in \S*/run-\d{8}_\d{6}-(\w{1,64})"
)
WANDB_FOLDER = re.compile(r"(?:offline-)?run-\d{8}_\d{6}-(\w+)")
PACKED = re.compile(r"\.(?:gz|bz2|xz|zst|lz4)$")
TASKS = "rank|node|task|worker|proc|gpu|host|local|seed|epoch|stage|attempt|restart|fold|trial"
JOB_IN_NAME = tuple(  # Slurm's %j, or %A_%a of an array
    re.compile(pattern)
    for pattern in (
        r"^slurm-([1-9]\d{0,11}(?:_\d{1,9})?)(?=[-_.]|$)",
        r"[-_.]([1-9]\d{3,11})[-.]\d{1,4}\.(?:out|err)$",  # %j-%t
        r"(?:^|[-_])([1-9]\d{2,11}(?:_\d{1,9})?)\.(?:out|err|log|txt)$",
        r"\.[oe]?([1-9]\d{2,11}(?:_\d{1,9})?)(?:\.(?:out|err))?$",
        # of one or two digits it may as well be a rank: Slurm's own endings, and no such word
        rf"^(?!(?:.*[-_.])?(?:{TASKS})s?-\d+\.)(?:.*-)?([1-9]\d?(?:_\d{{1,9}})?)\.(?:out|err)$",
    )
)
OF_ONE_PROCESS = re.compile(r"(?:^|[-_.])(?:node|task|worker|proc|gpu|host|local)s?[-_.]?\d")
RANK_IN_NAME = re.compile(r"(?:(?:^|[-_.])rank[-_.]?|^workerlog\.)(\d{1,7})(?=[-_.]|$)")
OF_LOGS = {"log", "logs"}  # folders that say nothing of the run
TASK_IN_NAME = re.compile(r"[-_.][1-9]\d{3,11}[-.](\d{1,4})\.(?:out|err)$")  # of Slurm: %j-%t
TORCHRUN = re.compile(r"(?:^|/)([^/]+)/attempt_\d+/(\d{1,4})/std(?:out|err)\.log$")
POD = re.compile(
    r"(?:^|/)(?P<of>[a-z0-9-]{1,63})_(?P<pod>[a-z0-9.-]{1,253})_[0-9a-f-]{32,36}/[a-z0-9-]{1,63}/"
    r"\d{1,9}\.log$"
    r"|(?:^|/)(?P<pod_2>[a-z0-9.-]{1,253})_(?P<of_2>[a-z0-9-]{1,63})_[a-z0-9-]{1,63}-[0-9a-f]{64}\.log$"
)
OF_GOODPUT_RUN = ".out.log"
ENDINGS = re.compile(r"(?:\.(?:out|err|log|txt|jsonl|json|gz))+$")


class RunName:
    """The name of a log's run, found as its parts come."""

    def __init__(self, file: PurePath, said: str | None) -> None:
        """Take the file and what the person who reads it in says of the run."""
        self._file = file
        self._file_name = unrotated(PACKED.sub("", file.name))
        self._said = said
        self._head = b""
        self._is_open = True
        self._in_text: str | None = None
        self._wandb: str | None = None

    def of(self, part: Part, first_event: int | None) -> str:
        """Return the run of the next part's events; `first_event`: the line of the file's first."""
        if part.first_line == 1:  # a file that was rotated goes on under the name that it had
            self._head, self._is_open = b"", True
        if self._is_open:
            lines = None if first_event is None else first_event - part.first_line + 1
            before = part.data if lines is None else files.with_ends(part.raw_lines[:lines])
            self._head = (self._head + before)[: files.HEAD_BYTES]
            self._in_text = job_in_text(self._head) or self._in_text
            self._is_open = first_event is None and len(self._head) < files.HEAD_BYTES
            self._wandb = _first(WANDB, self._head) or self._wandb
        if self._file_name.endswith(OF_GOODPUT_RUN):  # its job events have this name
            return printable(ENDINGS.sub("", self._file_name), RUN_ID_MAX_CHARS)
        if self._in_text is not None:
            return self._in_text
        if self._said is not None:
            return self._said
        found = (
            *(pod_of(self._file), job_in_name(self._file_name)),
            *(wandb_run_of(self._file), self._wandb),
        )
        return printable(next(filter(None, found), None) or self._of_file(), RUN_ID_MAX_CHARS)

    def _of_file(self) -> str:
        if of_torchrun := TORCHRUN.search(self._file.as_posix()):
            return of_torchrun[1]
        name = RANK_IN_NAME.sub("", ENDINGS.sub("", self._file_name)).strip("-_.")
        folders = (folder.name for folder in self._file.parents if folder.name not in OF_LOGS)
        return name or next(folders, "") or self._file_name


def rank_of(file: PurePath) -> int | None:
    """Return the rank that a file's name, or torchrun's folder, gives; None: it is of the gang."""
    name = unrotated(PACKED.sub("", file.name))
    found = RANK_IN_NAME.search(ENDINGS.sub("", name)) or TASK_IN_NAME.search(name)
    if found is not None:
        return int(found[1])
    of_torchrun = TORCHRUN.search(file.as_posix())
    return None if of_torchrun is None else int(of_torchrun[2])


def is_of_one_process(file: PurePath) -> bool:
    """Say whether a file is one of several logs of a job: `node_3.log`, that of a pod."""
    return OF_ONE_PROCESS.search(file.name) is not None or pod_of(file) is not None


def pod_of(file: PurePath) -> str | None:
    """Return namespace and name of the pod whose container writes a file on its node."""
    path = file.with_name(unrotated(PACKED.sub("", file.name))).as_posix()
    if (found := POD.search(path)) is None:
        return None
    return f"{found['of'] or found['of_2']}/{found['pod'] or found['pod_2']}"


def wandb_run_of(file: PurePath) -> str | None:
    """Return the id of the W&B run whose folder a file is in."""
    folders = (WANDB_FOLDER.fullmatch(folder.name) for folder in file.parents)
    return next((found[1] for found in folders if found), None)


def job_in_text(head: bytes) -> str | None:
    """Return the Slurm job id that a log's text names."""
    return next((name for pattern in JOB_IN_TEXT if (name := _first(pattern, head))), None)


def job_in_name(name: str) -> str | None:
    """Return the Slurm job id that a file's name ends with, or that follows `slurm-`."""
    return next((found[1] for pattern in JOB_IN_NAME if (found := pattern.search(name))), None)


def _first(pattern: re.Pattern[bytes], text: bytes) -> str | None:
    if (found := pattern.search(text)) is None:
        return None
    return printable(found[found.lastindex or 0].decode("utf-8", "replace"), RUN_ID_MAX_CHARS)
