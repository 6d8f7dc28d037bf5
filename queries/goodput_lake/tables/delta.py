"""Delta tables as a lake uses them: opened, with their errors as sentences.

The package is imported here alone, so that a missing one is the same sentence everywhere.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa

from goodput_lake.tables.arrange import DIGEST, LakeTable
from goodput_queries.errors import MissingExtraError, StoreError

try:
    import deltalake
    from deltalake import exceptions as delta_errors
except ImportError as error:
    raise MissingExtraError("a lake", "lake") from error


__all__ = ["create", "created", "delta_errors", "deltalake", "first_line", "opened"]

FAILED: Final = (delta_errors.DeltaError, OSError, ValueError)
COMMITS_BETWEEN_CHECKPOINTS: Final = "50"
REMOVED_KEPT_H: Final = 24  # files of earlier versions, for reads that are under way
NOT_DESCRIBED: Final = {"message", "content", "reason"}  # long texts
# a dictionary of what never repeats is written until it is too large, and then the values as well
WRITER: Final = deltalake.WriterProperties(
    compression="ZSTD",
    compression_level=3,
    column_properties={
        "ts": deltalake.ColumnProperties(dictionary_enabled=False, encoding="DELTA_BINARY_PACKED"),
        "energy_j": deltalake.ColumnProperties(dictionary_enabled=False),
    },
)


def opened(
    url: str, options: Mapping[str, str], version: int | None = None
) -> deltalake.DeltaTable | None:
    """Return a table; None where there is none; raises StoreError where it cannot be read."""
    try:
        return deltalake.DeltaTable(url, version=version, storage_options=dict(options) or None)
    except delta_errors.TableNotFoundError:
        return None
    except FAILED as error:
        at = "" if version is None else f" at version {version}"
        raise StoreError(f"{url}: cannot be read{at}: {first_line(error)}") from error


def created(url: str, table: LakeTable, options: Mapping[str, str]) -> deltalake.DeltaTable:
    """Return a raw table, made where there is none; several writers may do so at once."""
    while (found := opened(url, options)) is None:
        described = [n for n in table.model.grain if n not in NOT_DESCRIBED]
        if table.time and table.time not in described:
            described.append(table.time)
        # of these columns a commit notes least and greatest values of each file
        properties = {"delta.dataSkippingStatsColumns": ",".join([DIGEST, *described])}
        create(url, table.schema, properties, options, partition_by=table.partitions)
    return found


def create(
    url: str,
    schema: pa.Schema,
    properties: Mapping[str, str],
    options: Mapping[str, str],
    partition_by: Sequence[str] = (),
) -> None:
    """Create a table; one that is there stays as it is."""
    try:
        deltalake.DeltaTable.create(
            url,
            schema=deltalake.Schema.from_arrow(schema),
            mode="ignore",
            partition_by=list(partition_by),
            configuration={
                "delta.checkpointInterval": COMMITS_BETWEEN_CHECKPOINTS,
                "delta.enableExpiredLogCleanup": "false",  # loads are read from it
                "delta.deletedFileRetentionDuration": f"interval {REMOVED_KEPT_H} hours",
                **properties,
            },
            storage_options=dict(options) or None,
            raise_if_key_not_exists=False,
        )
    except FAILED as error:
        if opened(url, options) is None:  # else another writer was first
            raise StoreError(f"{url}: cannot be created: {first_line(error)}") from error


def first_line(error: Exception) -> str:
    """Return the first line of an error of deltalake, whose others draw its causes."""
    return str(error).strip().partition("\n")[0]
