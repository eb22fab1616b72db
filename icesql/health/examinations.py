"""The examinations of a table: findings about its files, their bounds, and its metadata."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from statistics import median
from typing import Any, Final

from msgspec.structs import replace

from icesql.errors import Error, plural
from icesql.health.facts import Column, Facts, Sizes, all_files, tried
from icesql.health.finding import Finding, Statement, column, set_properties, weight_of
from icesql.health.live_files import LiveFiles, place_text
from icesql.health.need import Instant, Need
from icesql.health.needs import (
    ALL_FILES,
    FEWEST_FILES,
    LARGEST_SHARE,
    apply_deletes,
    compact_options,
    expire,
    need,
    rewrite_all,
    try_need,
)
from icesql.iceberg.evolution.rules import shared_names
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.scan.report import bytes_text
from icesql.sql.table_name import name_text

_MANY_DELETE_FILES: Final = 100


def small_files(facts: Facts) -> Iterator[Finding]:
    """Small files that a compaction would combine, by the plan of that compaction."""
    compaction, count = need("compact", facts), facts.files.count
    if compaction is None or compaction.rewrite is None:
        return
    plan = Sizes.of(compaction.rewrite)
    after = count - plan.read + plan.made
    if plan.read - plan.older < FEWEST_FILES or after > count * LARGEST_SHARE:
        return
    size = median(facts.files.bytes)
    older = f"; {plan.older:,} of them are of older partition specs" if plan.older else ""
    yield compaction.finding(
        facts,
        "small files",
        weight_of(1 - after / count),
        f"a full read opens {count:,} files instead of {after:,}",
        f"{compaction.reason} (half are below {bytes_text(int(size))}); "
        f"together they make about {plan.made:,}{older}",
        "data_files",
    )


def delete_files(facts: Facts) -> Iterator[Finding]:
    """Deletes that every read has to merge."""
    files = facts.files
    deletes, data, equality = files.deletes, files.count, files.equality
    plan = tried(facts.plan, compact_options(facts)) if deletes else None
    merged = 0 if plan is None else sum(bool(task.deletes) for task in all_files(plan))
    if not merged:
        return
    gone, rows = files.deleted_rows, files.rows
    kinds = f", {equality:,} of them by equality" if equality else ""
    mended = _without_deletes(facts)
    found = mended.finding(
        facts,
        "deletes",
        "high" if equality else weight_of(min(gone / max(rows, 1), deletes / data) * 2),
        f"a full read opens {plural(deletes, 'more file')} and looks up the rows of "
        f"{plural(merged, 'data file')}",
        f"{plural(deletes, 'delete file')} beside {plural(data, 'data file')}{kinds}; "
        f"of {merged:,} of these they delete {gone:,} of {rows:,} rows, at the most",
        next(iter(mended.promise)),
    )
    if mended.name == "convert":  # Spark has no such procedure
        spark = apply_deletes(facts).mend(facts.parts).spark
        found = replace(found, mend=Statement(found.statement, spark))
    yield found
    if facts.metadata.format_version == 2 and deletes - equality >= _MANY_DELETE_FILES:
        yield Finding(
            "deletion vectors",
            "low",
            f"{deletes - equality:,} position delete files; version 3 has one vector a file",
            "readers that know version 3 merge a vector without sorting or joining",
            set_properties(facts.parts, {"format-version": "3"}),
        )


def _without_deletes(facts: Facts) -> Need:
    """The action of maintenance that removes deletes; else a rewrite only the doctor suggests."""
    compaction = try_need("compact", facts)
    groups = compaction.rewrite.groups if compaction and compaction.rewrite else ()
    if not any(task.deletes for group in groups for task in group.files):
        compaction = None
    return (
        try_need("convert", facts)
        or compaction
        or try_need("deletes", facts)
        or apply_deletes(facts)
    )


def skew(facts: Facts) -> Iterator[Finding]:
    """A partition that is much larger than the others."""
    sizes: dict[int, int] = defaultdict(int)
    for index, size in zip(facts.files.partitions, facts.files.bytes, strict=True):
        sizes[index] += size
    if len(sizes) < FEWEST_FILES:
        return
    number, largest = max(sizes.items(), key=lambda each: each[1])
    usual = median(sizes.values())
    if largest >= 20 * usual and largest >= 64 << 20:
        place = place_text(facts.table, facts.files.places[number])
        yield Finding(
            "skew",
            "low",
            f"the partition {place} has {bytes_text(largest)}, half of the others less than "
            f"{bytes_text(int(usual))}",
            "one task of a distributed query works while the others wait",
        )


# ------------------------------------------------------------------ bounds


_PROBES: Final = 200
_MOST_COLUMNS: Final = 3  # named in a finding
_MOST_MENDED: Final = 32  # in one statement
# The default number of columns that get metrics.
_INFERRED_COLUMNS: Final = 100


def overlap(facts: Facts) -> Iterator[Finding]:
    """Columns for which a lookup reads most files, and the effect of sorting by each."""
    candidates = []
    if facts.files.count < FEWEST_FILES:
        return
    for each in sorted(facts.columns, key=_likely):
        if each.name in facts.files.bounds and not each.is_identity:
            share = share_read(facts.files, each.name)
            if share is not None and share > 0.5:
                candidates.append((share, each.name))
        if len(candidates) == _MOST_COLUMNS:
            break
    planned = tried(facts.plan, ALL_FILES) if candidates else None
    if planned is None or (plan := Sizes.of(planned)).older:
        return
    for share, name in candidates:
        after = min(1.0, len(facts.files.places) / max(plan.made, 1))
        if after > share * 0.8:
            continue
        yield rewrite_all(facts, strategy="sort", sort_order=column(name)).finding(
            facts,
            "overlap",
            weight_of(share - after),
            f"a filter on {name} skips {1 - share:.0%} instead of {1 - after:.0%}",
            f"the bounds of {name} overlap: a lookup by one value reads "
            f"{share:.0%} of the files of a partition; sorted by it, {after:.0%}",
            f"share of files read by a lookup of {name}",
            share,
            after,
        )


def missing_bounds(facts: Facts) -> Iterator[Finding]:
    """Columns without bounds in their files, so that a filter on them skips no file."""
    data = facts.files.count
    usual = facts.properties.get("write.metadata.metrics.default", "truncate(16)")
    found: list[tuple[int, Column]] = []
    for index, each in enumerate(facts.columns):
        bounds = facts.files.bounds.get(each.name)
        if bounds is None or not data:
            continue
        mode = facts.properties.get(f"write.metadata.metrics.column.{each.name}", usual)
        # A file without a value count lacks the column, unless its writer left the counts out.
        left_out = mode.lower() == "none" or index >= _INFERRED_COLUMNS
        without = facts.files.whole(bounds.missing if left_out else bounds.counted)
        if without > data * 0.1:
            found.append((without, each))
    found.sort(key=lambda each: _likely(each[1]))
    # One finding for each column that users may filter by; a wide table has many other columns.
    for group in [found] if len(found) > _MOST_COLUMNS else [[each] for each in found]:
        yield _without_bounds(facts, group)


def _without_bounds(facts: Facts, found: list[tuple[int, Column]]) -> Finding:
    data, without = facts.files.count, max(count for count, _ in found)
    names = [column.name for _, column in found]
    columns = ", ".join(names[:_MOST_COLUMNS])
    if len(names) > _MOST_COLUMNS:
        columns += f" and {len(names) - _MOST_COLUMNS} more columns"
    modes = {
        f"write.metadata.metrics.column.{each}": "truncate(16)" for each in names[:_MOST_MENDED]
    }
    rewritten = rewrite_all(facts).finding(
        facts,
        "no bounds",
        # With few files there is little to skip.
        "low" if data < FEWEST_FILES else weight_of(without / data),
        "a filter on one of them reads all files"
        if len(names) > 1
        else f"a filter on {columns} reads all of them",
        f"{without:,} of {plural(data, 'file')} have no bounds of {columns}",
        f"files without bounds of {columns}",
        without,
        0 if len(names) <= _MOST_MENDED else None,
    )
    return replace(rewritten, mend=set_properties(facts.parts, modes).then(rewritten.mend))


def missing_nan_counts(facts: Facts) -> Iterator[Finding]:
    """Floating-point columns whose files do not record whether they contain NaN."""
    data = facts.files.count
    for each in facts.columns:
        bounds = facts.files.bounds.get(each.name)
        without = facts.files.whole(bounds.nan_unknown) if bounds else 0
        if without > data * 0.1 and data >= FEWEST_FILES:
            yield rewrite_all(facts).finding(
                facts,
                "no NaN counts",
                "low",
                f"NaN is greater than every number, so {each.name} > x skips none of them",
                f"{without:,} of {plural(data, 'file')} do not count NaN in {each.name}",
                f"files without a NaN count of {each.name}",
                without,
                0,
            )


def share_read(files: LiveFiles, column: str) -> float | None:
    """The share of a partition's files that a lookup by one value of ``column`` reads.

    Tried values are midpoints of files' bounds, up to 200 in a partition and fewer if there are
    many partitions. None if less than nine of ten files have bounds, or no partition has two files.
    """
    bounds = files.bounds[column]
    places: list[list[tuple[float, float]]] = [[] for _ in files.places]
    known = 0
    for place, low, high in zip(files.sampled, bounds.low, bounds.high, strict=True):
        if low == low and high == high:  # neither is NaN
            known += 1
            places[place].append((low, high))
    if known < len(files.sampled) * 0.9 or not known:
        return None
    shares, weights = 0.0, 0
    most = max(4, min(_PROBES, _PROBES * 10 // max(len(places), 1)))
    for each in places:
        if len(each) < 2:
            continue
        lows, highs = sorted(low for low, _ in each), sorted(high for _, high in each)
        probes = [(low + high) / 2 for low, high in each[:: max(1, len(each) // most)]]
        # Files that begin at or before the probe, without those that end before it.
        hits = sum(bisect_right(lows, probe) - bisect_left(highs, probe) for probe in probes)
        shares += hits / len(probes)
        weights += len(each)
    return shares / weights if weights else None


def _likely(column: Column) -> tuple[int, str]:
    """A sort key that puts likely filter columns first: times, then ids."""
    name, kind = column.name.lower(), column.type.lower()
    if kind.startswith(("timestamp", "date")):
        return 0, name
    return (1, name) if name == "id" or name.endswith(("_id", "id")) else (2, name)


# ------------------------------------------------------------------ metadata


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
