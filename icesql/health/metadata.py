"""Findings about metadata: snapshots, the log of metadata files, names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from msgspec.structs import replace

from icesql.errors import Error, plural
from icesql.health.facts import Facts, tried
from icesql.health.finding import Finding, weight_of
from icesql.health.need import Instant
from icesql.health.needs import expire, need, try_need
from icesql.health.statement import Statement, set_properties
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.iceberg.partition_names import shared_names
from icesql.scan.report_text import bytes_text
from icesql.sql.table_name import name_text

_FEWEST_SNAPSHOTS: Final = 5
_FILES: Final = ("file", "manifest", "manifest list")
_DAY_MS: Final = 86_400_000
_MANY_SNAPSHOTS: Final = 100
_MANY_METADATA_FILES: Final = 50
_LARGE_METADATA: Final = 4 << 20
_MOST_REQUESTS: Final = 20
_RECENT: Final = 50
_MOST_LISTED: Final = 200_000


def partition_names(facts: Facts) -> Iterator[Finding]:
    """Columns with the name of a partition field; Java's engines refuse to load such a table."""
    metadata = facts.metadata
    schema = metadata.schema
    for (name, source_id), field in shared_names([schema], metadata.specs.values()).items():
        if source_id in field.source_ids:
            continue  # Java loads it
        around = [each.name for each in reversed(schema.ancestors(source_id))]
        path = name_text((*around, schema.field_by_id[source_id].name))
        new = name_text([f"{schema.field_by_id[source_id].name}_column"])
        yield Finding(
            "partition names",
            "high",
            f'column {path} has the name of the partition field "{name}" ({field.transform})',
            "Spark, Trino, Flink and all that load tables with Iceberg's Java library refuse this "
            "one; RENAME or DROP of the column mends it",
            Statement(f"ALTER TABLE {name_text(facts.parts)} RENAME COLUMN {path} TO {new}"),
        )


def flink_streams(facts: Facts) -> Iterator[Finding]:
    """Flink streams whose upserts an expiry would stop."""
    if note := flink_note(facts.metadata):
        yield Finding("flink upserts", "low", "Flink writes into this table of version 3", note)


def flink_note(metadata: TableMetadata) -> str:
    """A note on the effect of an expiry on Flink streams; "" if none wrote lately."""
    newest = sorted(metadata.snapshots.values(), key=lambda each: -each.timestamp_ms)[:_RECENT]
    if metadata.format_version < 3 or not any("flink.job-id" in each.summary for each in newest):
        return ""
    return (
        "an expiry of snapshots stops Flink's upserts into tables of version 3: the next "
        "checkpoint with a deletion vector fails, also after a restart"
    )


def snapshots(facts: Facts) -> Iterator[Finding]:
    """Snapshots that no branch or tag keeps any more, and the files removed with them."""
    if facts.last_good:
        return  # an expiry could remove a snapshot to which damage can be rolled back
    known = len(facts.metadata.snapshots)
    expiry = need("expire", facts) if known >= _FEWEST_SNAPSHOTS else None
    gone = 0 if expiry is None else known - expiry.promise.get("snapshots", known)
    if expiry and gone >= _FEWEST_SNAPSHOTS and (answer := tried(facts.explain, expiry)):
        files = [
            row for row in answer.rows if row["action"] == "remove" and row["kind"].endswith(_FILES)
        ]
        yield replace(expiry, freed=_removed_bytes(facts, files)).finding(
            facts,
            "old snapshots",
            weight_of(gone / known / 2),
            f"they hold {len(files)} files, and each commit writes all snapshots again",
            measure="snapshots",
        )
        return
    if known >= _MANY_SNAPSHOTS:
        yield expire(older_than=Instant(facts.now_ms - _DAY_MS), retain_last=10).finding(
            facts,
            "many snapshots",
            "low",
            "each commit writes all of them again, and each first query reads them",
            f"{known:,} snapshots, all of them young enough to be kept",
        )


def _removed_bytes(facts: Facts, removed: Sequence[Mapping[str, Any]]) -> int:
    """The size of the files to remove; sizes of manifest lists are extrapolated from a sample."""
    size = sum(row["bytes"] or 0 for row in removed)
    lists = [row["name"] for row in removed if row["kind"] == "manifest list"]
    sizes = []
    for each in lists[:: max(1, len(lists) // _MOST_REQUESTS)]:
        with suppress(Error):  # deleted already, or outside of the allowed roots
            sizes.append(facts.table.storage.size(each))
    return size + (sum(sizes) * len(lists) // len(sizes) if sizes else 0)


def metadata_files(facts: Facts) -> Iterator[Finding]:
    """Old metadata files that are never deleted."""
    clears = facts.properties.get("write.metadata.delete-after-commit.enabled", "false")
    entries = len(facts.metadata.metadata_log)
    if clears.lower() != "true" and entries >= _MANY_METADATA_FILES:
        yield Finding(
            "metadata files",
            "low",
            f"{entries:,} old metadata files are in the log, and none is ever deleted",
            "they take room in the store, and an expiry does not remove them",
            set_properties(
                facts.parts,
                {
                    "write.metadata.delete-after-commit.enabled": "true",
                    "write.metadata.previous-versions-max": "20",
                },
            ),
        )


def metadata_size(facts: Facts) -> Iterator[Finding]:
    """A large metadata file: it is always read and written as a whole."""
    metadata = facts.metadata
    if facts.table.document is not None:
        return
    size = facts.table.storage.size(facts.table.metadata_location)
    if size >= _LARGE_METADATA:
        found = expire(clean_expired_metadata=True).finding(
            facts,
            "metadata size",
            "medium" if size >= 10 * _LARGE_METADATA else "low",
            "each commit writes all of it again, and each first query reads it",
            f"the metadata file has {bytes_text(size)}, with "
            f"{plural(len(metadata.snapshots), 'snapshot')} and "
            f"{plural(len(metadata.schemas), 'schema')}",
        )
        # An expiry could remove a snapshot to which damage can be rolled back.
        yield replace(found, mend=Statement()) if facts.last_good else found


def orphans(facts: Facts) -> Iterator[Finding]:
    """Files in the table's folder that no snapshot needs, found by listing the folder."""
    if facts.files.count + facts.files.deletes > _MOST_LISTED:
        return  # a listing would take minutes; users can CALL system.remove_orphan_files
    if removal := try_need("orphans", facts):
        gone = removal.promise["removed_orphans"]
        cost = f"they take {bytes_text(removal.freed)}, and nothing reads them"
        yield removal.finding(
            facts, "orphans", removal.weight, cost, measure="orphan files", now=gone, after=0
        )
