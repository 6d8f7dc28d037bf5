"""The table `loads` of a lake: the loads of all tables, so that their logs can be cleaned up."""

from dataclasses import astuple, fields
from typing import Final

import pyarrow as pa

from goodput_lake.tables import delta
from goodput_lake.tables.delta import delta_errors, deltalake
from goodput_lake.tables.loads import LakeCommit, loads_schema, logged, versions_in_log
from goodput_lake.tables.objects import LakePlace
from goodput_queries.errors import StoreError

TABLE: Final = "loads"
READ_FROM_LOG_MAX: Final = 200  # commits; more of them are sooner read from the archive


def loads_after(lake: LakePlace, table: str, after: int) -> list[LakeCommit]:
    """Return the loads of a table that were committed after a version, in order."""
    in_log = versions_in_log(lake.objects, table, after)
    if len(in_log) <= READ_FROM_LOG_MAX and (not in_log or in_log[0] == after + 1):
        return logged(lake.objects, table, in_log)
    archive = _opened(lake)
    until = archive.transaction_version(table)
    if until is None or until <= after:
        return logged(lake.objects, table, in_log)
    condition = [("table", "=", table), ("version", ">", after)]
    found = archive.to_pyarrow_table(filters=condition).sort_by("version").to_pylist()
    archived = [LakeCommit(**row) for row in found]
    return archived + logged(lake.objects, table, [one for one in in_log if one > until])


def archive_loads(lake: LakePlace) -> int:
    """Add what tables were loaded since the last time; return the number of loads.

    Raises StoreError where another process does the same.
    """
    archive = _opened(lake)
    loads, until = list[LakeCommit](), dict[str, int]()
    for table in lake.tables():
        after = archive.transaction_version(table)
        in_log = versions_in_log(lake.objects, table, -1 if after is None else after)
        loads += logged(lake.objects, table, in_log)
        if in_log:
            until[table] = in_log[-1]
    if not until:
        return 0
    columns = [[astuple(one)[i] for one in loads] for i in range(len(fields(LakeCommit)))]
    try:
        deltalake.write_deltalake(
            archive,
            pa.table(columns, schema=loads_schema()),
            mode="append",
            commit_properties=deltalake.CommitProperties(
                app_transactions=[deltalake.Transaction(*one) for one in until.items()]
            ),
        )
    except delta_errors.CommitFailedError as error:
        raise StoreError(f"{lake.url}: another process compacts this lake now.") from error
    except delta.FAILED as error:
        raise StoreError(f"{lake.url}: cannot be written: {delta.first_line(error)}") from error
    return len(loads)


def _opened(lake: LakePlace) -> deltalake.DeltaTable:
    found = delta.opened(f"{lake.url}/{TABLE}", lake.storage_options)
    if found is None:
        raise StoreError(f"{lake.url}: the table of loads is gone.")
    return found
