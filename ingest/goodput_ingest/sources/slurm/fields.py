"""The fields of `sacct`: what is asked of the command is what is read from files and from JSON."""

import csv
from importlib.resources import files
from typing import Final

_FILE: Final = files("goodput_ingest.sources.slurm") / "sacct_fields.csv"
# with the column that its text or its time becomes; a record changes from State on while it is the
# same one, and the last may have any character in it
FIELDS: Final[dict[str, str | None]] = {
    row["field"]: row["column"] or None
    for row in csv.DictReader(_FILE.read_text("utf-8").splitlines())
}
TIMES: Final = {
    name: column for name, column in FIELDS.items() if column and column.endswith("_at")
}
TEXTS: Final = {name: column for name, column in FIELDS.items() if column and name not in TIMES}
REQUIRED: Final = ("State", "Submit", "Start", "End")
IN_FILES_ALONE: Final = {"Elapsed", "Timelimit", "NCPUS"}  # asked for in their raw form
# of a release that lacks one (`sacct -e`) the others are asked for
ASKED: Final = tuple(name for name in FIELDS if name not in IN_FILES_ALONE)
# as a person writes it, without what older releases lack or few jobs have
COMMAND: Final = (
    r"TZ=UTC SLURM_TIME_FORMAT=%s sacct -a -D -X -P --delimiter=$'\x1f' -S <from> -E now+30days -o "
    + ",".join(
        name
        for name in ASKED
        if name not in {"UID", "AllocCPUS", "ReqCPUS", "Restarts", "Constraints"}
    )
)
STABLE: Final = ASKED.index("State")
XDMOD: Final = (  # what Open XDMoD's slurm helper asks for, --noheader and | between the fields
    *("JobID", "JobIDRaw", "Cluster", "Partition", "QOS", "Account", "Group", "GID", "User", "UID"),
    *("Submit", "Eligible", "Start", "End", "Elapsed", "ExitCode", "State", "NNodes", "NCPUS"),
    *("ReqCPUS", "ReqMem", "ReqTRES", "AllocTRES", "Timelimit", "NodeList", "JobName"),
)
FREE_TEXTS: Final = {  # of these any character may be, that between the fields too
    *("AdminComment", "Comment", "Constraints", "Container", "Extra", "JobName", "Licenses"),
    *("McsLabel", "Reason", "StdErr", "StdIn", "StdOut", "SubmitLine", "SystemComment", "WCKey"),
    "WorkDir",
}
