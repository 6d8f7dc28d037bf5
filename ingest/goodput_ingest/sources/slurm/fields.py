"""The fields of `sacct`: what is asked of the command is what is read from files and from JSON."""

from typing import Final

FIELDS: Final[dict[str, str | None]] = {  # with the column that its text or its time becomes
    "Cluster": None,
    "JobID": None,
    "JobIDRaw": None,
    "DBIndex": None,
    "User": "user_name",
    "UID": "user_id",
    "Account": "account",
    "QOS": "qos",
    "Partition": "partition",
    "Reservation": "reservation",
    "State": None,  # from here on a record changes while it is the same one
    "ExitCode": "exit_code",
    "DerivedExitCode": "derived_exit_code",
    "Reason": "reason",
    "Submit": "submit_at",
    "Eligible": "eligible_at",
    "Start": "start_at",
    "End": "end_at",
    "Elapsed": None,
    "ElapsedRaw": None,
    "Suspended": None,
    "Timelimit": None,
    "TimelimitRaw": None,
    "NNodes": None,
    "NodeList": None,
    "ReqTRES": "req_tres",
    "AllocTRES": "alloc_tres",
    "AllocCPUS": None,
    "NCPUS": None,
    "ReqCPUS": None,
    "Restarts": None,
    "Constraints": None,
    "Flags": "flags",
    "Comment": "comment",
    "JobName": "job_name",  # the last: any character may be in it
}
TIMES: Final = {
    name: column for name, column in FIELDS.items() if column and column.endswith("_at")
}
TEXTS: Final = {name: column for name, column in FIELDS.items() if column and name not in TIMES}
REQUIRED: Final = ("State", "Submit", "Start", "End")
IN_FILES_ALONE: Final = {"Elapsed", "Timelimit", "NCPUS"}  # asked for in their raw form
# of a release that lacks one (`sacct -e`) the others are asked for
ASKED: Final = tuple(name for name in FIELDS if name not in IN_FILES_ALONE)
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
