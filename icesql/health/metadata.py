"""Findings about the metadata of a table: manifests, snapshots and the log of its files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final

from icesql.commit.manifests.rewrite import plan_manifests
from icesql.errors import Error
from icesql.health.facts import Answer, Ask, Facts, try_to_ask
from icesql.health.files import count_text
from icesql.health.finding import Finding, Gain, weight_of
from icesql.health.statement import Statement, call, constant, set_properties
from icesql.iceberg.manifest.manifest import ManifestContent
from icesql.iceberg.metadata.property_numbers import whole_number
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.iceberg.partition_names import shared_names
from icesql.scan.report_text import bytes_text
from icesql.sql.table_name import name_text

_FEWEST_MANIFESTS: Final = 10
_FEWEST_SNAPSHOTS: Final = 5
_MANY_SNAPSHOTS: Final = 100
_MANY_METADATA_FILES: Final = 50
_LARGE_METADATA: Final = 4 << 20
_ORPHANS: Final = re.compile(
    r"(\d+) of (\d+) files in .* are orphans, (.+?)(?:, (\d+) more are too young)?", re.DOTALL
)
_MOST_ASKED: Final = 20
_RECENT: Final = 50
_MOST_LISTED: Final = 200_000
_MANIFEST_BYTES: Final = 8 << 20


def manifests(facts: Facts, ask: Ask) -> Iterator[Finding]:
    """Many small manifests, or such that hold files of too many partitions each."""
    given = facts.files.manifests
    groups = plan_manifests(given, facts.table.metadata.default_spec_id, manifest_bytes(facts))
    data = [each for each in groups if each.content is ManifestContent.DATA]
    count = sum(len(each.manifests) for each in data)
    after = sum(each.count for each in data)
    if count < _FEWEST_MANIFESTS:
        return
    if after > count / 2:
        yield from _clustering(facts, after)
        return
    size = sum(each.manifest_length or 0 for group in data for each in group.manifests) // count
    yield Finding(
        "manifests",
        weight_of(1 - after / count) if count >= 50 else "medium",
        f"{count:,} manifests of data files, {bytes_text(size)} each on average; "
        f"together they make about {after:,}",
        f"planning a query opens up to {count:,} manifests instead of {after:,}",
        call("rewrite_manifests", facts.parts),
        "manifests",
        len(given),
        len(given) - sum(len(each.manifests) - each.count for each in groups),
    )


def manifest_bytes(facts: Facts) -> int:
    """How large the table wants its manifests."""
    found = whole_number(facts.properties.get("commit.manifest.target-size-bytes"))
    return _MANIFEST_BYTES if found is None else found


def _clustering(facts: Facts, after: int) -> Iterator[Finding]:
    """Manifests of the right size in which the files of one partition are far apart."""
    places = sum(
        1 for spec, _ in facts.files.places if spec == facts.table.metadata.default_spec_id
    )
    spread = manifests_read(facts.files.spread, places)
    # Those of a partition lie side by side afterwards, some of them across the end of one.
    best = manifests_read([places + after - 1], places)
    if places < 2 or spread < 3 or best > spread / 2:
        return
    yield Finding(
        "manifest clustering",
        weight_of(1 - best / spread),
        f"the files of one partition are in {spread:,.1f} of {len(facts.files.spread):,} manifests "
        "on average",
        f"planning a query of one partition opens {spread:,.1f} manifests instead of {best:,.1f}",
        call("rewrite_manifests", facts.parts),
        "manifests of a partition",
        round(spread, 2),
        round(best, 2),
    )


def manifests_read(spread: Sequence[int], places: int) -> float:
    """How many manifests hold files of a partition, on average."""
    return sum(spread) / max(places, 1)


def partition_names(facts: Facts, ask: Ask) -> Iterator[Finding]:
    """Columns with the name of a partition field, which Java's engines refuse to load."""
    metadata = facts.table.metadata
    schema = metadata.schema
    for (name, column), field in shared_names([schema], metadata.specs.values()).items():
        if column in field.source_ids:
            continue  # it loads
        around = [each.name for each in reversed(schema.ancestors(column))]
        path = name_text((*around, schema.field_by_id[column].name))
        new = name_text([f"{schema.field_by_id[column].name}_column"])
        yield Finding(
            "partition names",
            "high",
            f'column {path} has the name of the partition field "{name}" ({field.transform})',
            "Spark, Trino, Flink and all that load tables with Iceberg's Java library refuse this "
            "one; RENAME or DROP of the column mends it",
            Statement(f"ALTER TABLE {name_text(facts.parts)} RENAME COLUMN {path} TO {new}"),
        )


def flink_streams(facts: Facts, ask: Ask) -> Iterator[Finding]:
    """Streams whose upserts an expiry would stop."""
    if note := flink_note(facts.table.metadata):
        yield Finding("flink upserts", "low", "Flink writes into this table of version 3", note)


def flink_note(metadata: TableMetadata) -> str:
    """What an expiry does to a stream of Flink, "" where none wrote lately."""
    newest = sorted(metadata.snapshots.values(), key=lambda each: -each.timestamp_ms)[:_RECENT]
    if metadata.format_version < 3 or not any("flink.job-id" in each.summary for each in newest):
        return ""
    return (
        "an expiry of snapshots stops Flink's upserts into tables of version 3: the next "
        "checkpoint with a deletion vector fails, also after a restart"
    )


def snapshots(facts: Facts, ask: Ask) -> Iterator[Finding]:
    """Snapshots that no branch or tag keeps any more, and the files that go with them."""
    statement = call("expire_snapshots", facts.parts)
    if facts.last_good:
        return  # an expiry may remove what mends the table
    known = len(facts.table.metadata.snapshots)
    answer = try_to_ask(ask, f"EXPLAIN {statement.icesql}") if known >= _FEWEST_SNAPSHOTS else None
    if answer is not None:
        for note in answer.notes:
            found = re.match(r"([\d,]+) snapshots and ([\d,]+) files would go", note)
            if found and (gone := int(found[1].replace(",", ""))) >= _FEWEST_SNAPSHOTS:
                yield Finding(
                    "old snapshots",
                    weight_of(gone / known / 2),
                    f"{gone:,} of {known:,} snapshots are older than the table keeps",
                    f"they hold {found[2]} files, and each commit writes all snapshots again",
                    statement,
                    "snapshots",
                    known,
                    known - gone,
                    gain=Gain(bytes=_removed_bytes(facts, answer)),
                )
                return
    if known >= _MANY_SNAPSHOTS:
        yield Finding(
            "many snapshots",
            "low",
            f"{known:,} snapshots, all of them young enough to be kept",
            "each commit writes all of them again, and each first query reads them",
            call(
                "expire_snapshots",
                facts.parts,
                # Spark's procedures take constants alone.
                older_than=constant(
                    f"TIMESTAMP '{datetime.now(UTC) - timedelta(days=1):%Y-%m-%d %H:%M:%S}+00:00'"
                ),
                retain_last=10,
            ),
        )


def _removed_bytes(facts: Facts, answer: Answer) -> int:
    """The bytes of the files that would be removed; those of lists by the size of some."""
    removed = [row for row in answer.rows if row[0] == "remove"]
    size = sum(row[3] or 0 for row in removed)
    lists = [row[2] for row in removed if row[1] == "manifest list"]
    asked = []
    for each in lists[:: max(1, len(lists) // _MOST_ASKED)]:
        with suppress(Error):  # it is gone already, or lies where nobody may look
            asked.append(facts.table.storage.size(each))
    return size + (sum(asked) * len(lists) // len(asked) if asked else 0)


def metadata_files(facts: Facts, ask: Ask) -> Iterator[Finding]:
    """Old metadata files that nobody deletes."""
    clears = facts.properties.get("write.metadata.delete-after-commit.enabled", "false")
    entries = len(facts.table.metadata.metadata_log)
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


def metadata_size(facts: Facts, ask: Ask) -> Iterator[Finding]:
    """A large metadata file, which is read and written whole."""
    metadata = facts.table.metadata
    if facts.table.document is not None:
        return
    size = facts.table.storage.size(facts.table.metadata_location)
    if size >= _LARGE_METADATA:
        yield Finding(
            "metadata size",
            "medium" if size >= 10 * _LARGE_METADATA else "low",
            f"the metadata file has {bytes_text(size)}, with "
            f"{count_text(len(metadata.snapshots), 'snapshot')} and "
            f"{count_text(len(metadata.schemas), 'schema')}",
            "each commit writes all of it again, and each first query reads it",
            # An expiry may remove what mends a table.
            Statement()
            if facts.last_good
            else call("expire_snapshots", facts.parts, clean_expired_metadata=constant("true")),
        )


def orphans(facts: Facts, ask: Ask) -> Iterator[Finding]:
    """Files in the table's folder that no snapshot needs, found by listing it."""
    if facts.files.count + facts.files.deletes > _MOST_LISTED:
        return  # a listing would take minutes; CALL system.remove_orphan_files makes it
    statement = call("remove_orphan_files", facts.parts)
    answer = try_to_ask(ask, f"EXPLAIN {statement.icesql}")
    if answer is None:
        return
    for note in answer.notes:
        found = _ORPHANS.fullmatch(note)
        if found is None or not (gone := int(found[1])):
            continue
        young = f"; {found[4]} more are younger, maybe of writes that failed" if found[4] else ""
        yield Finding(
            "orphans",
            weight_of(gone / int(found[2]) / 2),
            f"{gone:,} of {int(found[2]):,} files in the table's folder are older than three days "
            f"and needed by no snapshot{young}",
            f"they take {found[3]}, and nothing reads them",
            statement,
            "orphan files",
            gone,
            0,
            gain=Gain(bytes=sum(row[3] or 0 for row in answer.rows if row[0] == "remove")),
        )
