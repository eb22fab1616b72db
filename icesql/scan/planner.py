"""Plan a scan: from its snapshot's manifests to the files, deletes and residuals to read."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from icesql.context import QueryContext
from icesql.errors import CorruptFileError, UnsupportedTableError
from icesql.iceberg.expressions.predicate import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    Predicate,
    leaves,
)
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.manifest.entries import FilterColumns, ManifestEntries
from icesql.iceberg.manifest.manifest import ManifestContent, ManifestFile
from icesql.scan.manifest_reader import ManifestReader, WantedOf
from icesql.scan.plan import NeededFiles, ScanPlan, SkipRecord, Survivors, TableScan, scan_context
from icesql.scan.report import ScanCounts
from icesql.scan.spec_scan import SpecScan, SpecScans
from icesql.scan.tasks import FileScanTask, content_bytes

# Modules for pruning and deletes are imported on first use: most scans have neither.
if TYPE_CHECKING:
    from icesql.catalog.table import Table
    from icesql.iceberg.metadata.snapshot import Snapshot
    from icesql.iceberg.schema import Schema
    from icesql.scan.changes import ChangeScan
    from icesql.scan.deletes.delete_index import DeleteIndex
    from icesql.scan.pruning import skip_reasons
    from icesql.scan.pruning.file_conditions import FileCondition


# Fewer are decoded whole in the time that an expression for them takes to compile. CPU time of
# whole entries as a multiple of those decoded for the filter (tests/benchmarks planning, 1 to 4
# columns): warm 2.0 to 3.0 for 3,000 entries, 2.2 to 2.8 for 10,000, 2.2 to 2.4 for 50,000; a cold
# process 1.0, 1.2 to 1.3, 1.6 to 1.9.
_MANY_ENTRIES: Final = 3_000
_FEW_FIELDS: Final = 4
_COMPARED: Final = ("lower_bounds", "upper_bounds", "null_value_counts", "value_counts")


def plan_snapshot(
    table: Table,
    snapshot: Snapshot | None,
    query: QueryContext,
    row_filter: Predicate = ALWAYS_TRUE,
    projection: Schema | None = None,
    *,
    all_deletes: bool = False,
) -> ScanPlan:
    """The files of a snapshot, by default to read all columns; see ``TableScan`` and ``plan``."""
    schema = table.metadata.schema
    columns = projection or schema
    scan = TableScan(table, snapshot, schema, columns, row_filter, all_deletes=all_deletes)
    return plan(scan, query)


def plan(scan: TableScan, query: QueryContext) -> ScanPlan:
    """The files of ``scan`` that can hold a row of it, with their deletes and residuals.

    Files are in the order of the snapshot's manifests. Only metadata is read: a manifest whose
    partition summaries rule it out is not opened, and delete manifests only once a data file is
    left. The setting ``prune`` off keeps every live file. Where the catalog plans the scans of the
    table, the catalog is called instead. Raises UnsupportedTableError for encrypted tables,
    CorruptFileError, StorageError, and QueryCancelledError between manifests.
    """
    started = time.perf_counter()
    if scan.metadata_table is not None:
        return _plan_metadata(scan, query, started)
    if scan.table.planning is not None:
        from icesql.scan.by_catalog import plan_by_catalog

        return plan_by_catalog(scan, scan.table.planning, scan.trusted(scan.row_filter), query)
    if scan.changes is not None:
        return _plan_changes(scan, scan.changes, query, started)
    walk = _Walk(scan, query)
    needed = _needed_files(tuple(walk.file_tasks()), walk)
    return _planned(
        scan,
        query,
        started,
        needed.files,
        skipped=tuple(walk.skipped),
        counts=walk.counts,
        survivors=tuple(walk.survivors),
        limit_reached=walk.limit_reached,
        counted=needed.counts,
        files_counted=needed.left_out,
        constants=needed.rows,
        constant_counts=needed.copies,
        repeated=tuple(walk.repeated),
    )


def _needed_files(files: tuple[FileScanTask, ...], walk: _Walk) -> NeededFiles:
    """The matching files that must be read, without those that metadata answers alone.

    ``walk`` is updated as if no others had been found.
    """
    scan, settings = walk.scan, walk.query.settings
    needed, verifies = NeededFiles(files), settings.verify == "full"
    if not settings.prune:
        return needed
    # Counts of files that are not opened verify nothing.
    if (scan.extremes or scan.counts) and not (scan.counts and verifies):
        from icesql.scan.extreme_files import needed_for_extremes

        needed = needed_for_extremes(files, walk)
    if (scan.values_only or scan.rows_alike) and not verifies:
        from icesql.scan.extreme_files import without_constant_files

        found = without_constant_files(needed.files, walk, counted=not scan.values_only)
        needed = replace(found, counts=needed.counts, left_out=found.left_out + needed.left_out)
    return needed


def _plan_metadata(scan: TableScan, query: QueryContext, started: float) -> ScanPlan:
    from icesql.scan.metadata_tables.rows import metadata_rows

    return _planned(scan, query, started, (), metadata=metadata_rows(scan, query))


def _plan_changes(
    scan: TableScan, changes: ChangeScan, query: QueryContext, started: float
) -> ScanPlan:
    from icesql.scan.changes import plan_changes

    found = plan_changes(scan, changes, query)
    files = tuple(task for commit in found.commits for task in commit.tasks)
    counts = ScanCounts(result_data_files=len(files))
    return _planned(scan, query, started, files, counts=counts, changes=found)


def _planned(
    scan: TableScan,
    query: QueryContext,
    started: float,
    files: tuple[FileScanTask, ...],
    **facts: Any,
) -> ScanPlan:
    """The plan of a scan that was begun at ``started``, with some of its other facts."""
    return ScanPlan(
        scan=scan,
        context=scan_context(scan),
        files=files,
        settings=query.settings,
        planning_seconds=time.perf_counter() - started,
        **facts,
    )


def _trusted_conditions(scan: TableScan) -> tuple[FileCondition, ...]:
    """The file conditions on columns whose metrics describe the values read."""
    mapping = scan.table.metadata.name_mapping
    if mapping is None or not scan.file_conditions:
        return scan.file_conditions
    return tuple(
        each for each in scan.file_conditions if mapping.field_ids.issuperset(each.field_ids)
    )


class _Walk:
    """One pass over the manifests of a scan, with what it counts on the way."""

    def __init__(self, scan: TableScan, query: QueryContext) -> None:
        self.scan, self.query = scan, query
        self.counts = ScanCounts()
        self.skipped: list[SkipRecord] = []
        self.survivors: list[Survivors] = []
        self.limit_reached = False
        self._prunes = query.settings.prune
        self._filter = scan.trusted(scan.row_filter) if self._prunes else ALWAYS_TRUE
        self._conditions = _trusted_conditions(scan) if self._prunes else ()
        self._specs = SpecScans(self._filter, scan.schema, scan.table.metadata)
        self._manifests = ManifestReader(scan.table, query, self._specs.form_of)
        self._delete_manifests: list[ManifestFile] = []
        self._places: set[str] = set()  # the live data files
        self.repeated: dict[str, None] = {}  # those that are listed more than once

    def file_tasks(self) -> Iterator[FileScanTask]:
        """The tasks of the files that are left, whole files."""
        snapshot = self.scan.snapshot
        if snapshot is None or self._filter is ALWAYS_FALSE or self.scan.limit == 0:
            return
        data_manifests = []
        for manifest in self._manifests.manifests_of(snapshot):
            if manifest.content is ManifestContent.DATA:
                self.counts.total_data_manifests += 1
                data_manifests.append(manifest)
            else:
                self.counts.total_delete_manifests += 1
                self._delete_manifests.append(manifest)
        data_manifests = [each for each in data_manifests if self._opens(each)]
        if self._conditions and any(each.partitions for each in data_manifests):
            data_manifests = self._satisfying(data_manifests)
        self._delete_manifests = [each for each in self._delete_manifests if self._is_live(each)]
        rows_wanted = self._rows_wanted()
        walk = self._manifests.filtered_entries_of(data_manifests, self._wanted(data_manifests))
        for manifest, columns in walk:
            self.counts.scanned_data_manifests += 1
            spec = self._specs.of(manifest)
            matching = self._matching_files(columns, spec)
            if rows_wanted is not None:
                matching, rows_wanted = _until(rows_wanted, matching, columns.record_count)
            if not matching:
                continue
            entries, kept = columns.narrowed_to(matching)
            yield from self._tasks_of(manifest, entries, kept, spec, columns.count)
            if rows_wanted is not None and rows_wanted <= 0:
                self.limit_reached = True
                return

    def _rows_wanted(self) -> int | None:
        """The number of rows that suffice, None if some rows of a file may not match."""
        scan = self.scan
        if scan.row_filter is not ALWAYS_TRUE or self._delete_manifests or not self._prunes:
            return None
        if scan.file_conditions:
            return None
        return self.scan.limit

    def _wanted(self, manifests: Sequence[ManifestFile]) -> WantedOf | None:
        """The columns of an entry that the filter uses, if they are few and few entries match."""
        if self._conditions or self.scan.explain:
            return None
        if sum(each.entries_count or 0 for each in manifests) < _MANY_ENTRIES:
            return None
        fields = {each.term.field_id for each in leaves(self._filter)}
        if not 0 < len(fields) <= _FEW_FIELDS:
            return None
        wanted = frozenset((name, field_id) for name in _COMPARED for field_id in fields)
        counts = self.counts
        skipped, found = counts.skipped_data_files, counts.result_data_files

        def wanted_of() -> frozenset[tuple[str, int]] | None:
            left, gone = counts.result_data_files - found, counts.skipped_data_files - skipped
            return wanted if left <= gone or left < _MANY_ENTRIES // 4 else None

        return wanted_of

    # ------------------------------------------------------------------ manifests

    def _is_live(self, manifest: ManifestFile) -> bool:
        return not self._prunes or manifest.has_live_files

    def _opens(self, manifest: ManifestFile) -> bool:
        """Whether a manifest has live files that may match; counts it when it does not."""
        if not self._is_live(manifest):
            return False
        spec = self._specs.of(manifest)
        if spec.predicate is ALWAYS_TRUE:
            return True
        from icesql.scan.pruning.partition_evaluator import manifest_may_match

        if manifest_may_match(manifest, spec.predicate, spec.types_by_id):
            return True
        if manifest.content is ManifestContent.DATA:
            self.counts.skipped_data_manifests += 1
        else:
            self.counts.skipped_delete_manifests += 1
        if self.scan.explain:
            from icesql.scan.pruning import skip_reasons

            self.skipped.append(skip_reasons.skipped_manifest(manifest, spec))
        return False

    def _satisfying(self, manifests: Sequence[ManifestFile]) -> list[ManifestFile]:
        """The data manifests whose partition summaries may satisfy the file conditions."""
        from icesql.scan.pruning.file_conditions import ValueRange, passing, summary_ranges

        ranges, unknown = (
            [summary_ranges(m, self._specs.of(m)) for m in manifests],
            ValueRange(nans=True),
        )
        kept, ruled_out = passing(
            self._conditions,
            range(len(manifests)),
            lambda field_id, member: ranges[member].get(field_id, unknown),
            self.query,
        )
        self.counts.skipped_data_manifests += len(ruled_out)
        if self.scan.explain:
            from icesql.scan.pruning import skip_reasons

            paths = [each.manifest_path for each in manifests]
            self.skipped += skip_reasons.skipped_by_conditions("manifest", paths, ruled_out)
        return [manifests[each] for each in kept]

    # ------------------------------------------------------------------ data files

    def _matching_files(self, entries: FilterColumns, spec: SpecScan) -> Sequence[int]:
        """Indexes of the live files whose partition and metrics may match.

        Metrics are compared with the residual: bounds need not rule out a side of an OR that the
        partition has ruled out.
        """
        live = _live(entries)
        kept = self._in_partition(entries, live, spec, "file")
        if self._filter is not ALWAYS_TRUE:
            from icesql.scan.pruning.metrics_evaluator import metrics_mask

            chosen: list[int] = []
            for residual, members in _by_residual(entries, kept, spec).items():
                if residual is ALWAYS_TRUE:
                    chosen += members
                    continue
                mask = metrics_mask(entries, residual, self.scan.schema, members)
                chosen += [index for index in members if mask[index]]
                if self.scan.explain:
                    from icesql.scan.pruning import skip_reasons

                    failing = [index for index in members if not mask[index]]
                    self.skipped += skip_reasons.skipped_by_metrics(
                        entries.whole, failing, residual, self.scan.schema, "file"
                    )
            chosen.sort()
            kept = chosen
        if self._conditions and kept:
            kept = self._passing(entries, kept, spec)
        self.counts.skipped_data_files += len(live) - len(kept)
        return kept

    def _passing(
        self, entries: FilterColumns, indexes: Sequence[int], spec: SpecScan
    ) -> Sequence[int]:
        """Those of ``indexes`` whose values and bounds may satisfy the file conditions."""
        from icesql.scan.pruning.file_conditions import Ranges, passing

        range_of = Ranges(entries, spec, self.scan.schema).of
        kept, ruled_out = passing(self._conditions, indexes, range_of, self.query)
        if self.scan.explain:
            from icesql.scan.pruning import skip_reasons

            self.skipped += skip_reasons.skipped_by_conditions(
                "file", entries.whole.path, ruled_out
            )
        return kept

    def _in_partition(
        self,
        entries: FilterColumns,
        indexes: Sequence[int],
        spec: SpecScan,
        kind: skip_reasons.Kind,
    ) -> Sequence[int]:
        if spec.predicate is ALWAYS_TRUE:
            return indexes
        from icesql.scan.pruning.partition_evaluator import partition_mask

        mask = partition_mask(entries, spec.predicate, spec.spec, indexes)
        if self.scan.explain:
            from icesql.scan.pruning import skip_reasons

            failing = [index for index in indexes if not mask[index]]
            self.skipped += skip_reasons.skipped_by_partition(entries.whole, failing, spec, kind)
        return [index for index in indexes if mask[index]]

    def _tasks_of(
        self,
        manifest: ManifestFile,
        entries: ManifestEntries,
        indexes: Sequence[int],
        spec: SpecScan,
        count: int,
    ) -> Iterator[FileScanTask]:
        """The files at some ``indexes`` of a manifest that has so many entries in all."""
        if not indexes:
            return
        encrypted = entries.rare.get("key_metadata")
        counts, index_of_deletes = self.counts, self._deletes
        residual_of, partitions = spec.residuals.residual, entries.partition
        places, paths = self._places, entries.path
        for index in indexes:
            if encrypted and encrypted.get(index):
                raise self._encrypted(entries.path[index])
            known = len(places)
            places.add(paths[index])
            if len(places) == known:
                self.repeated.setdefault(_listed_again(self.scan, paths[index], manifest, count))
            data_file = entries.data_file(index)
            size = data_file.file_size_in_bytes
            deletes: tuple[DataFile, ...] = ()
            if index_of_deletes is not None:
                deletes = index_of_deletes.deletes_of(data_file)
                counts.result_delete_files += len(deletes)
                counts.total_delete_file_size_in_bytes += content_bytes(deletes)
            counts.total_file_size_in_bytes += size
            yield FileScanTask(data_file, 0, size, deletes, residual_of(partitions[index]))
        counts.result_data_files += len(indexes)
        self.survivors.append(Survivors(entries, indexes))

    def _encrypted(self, path: str) -> UnsupportedTableError:
        return UnsupportedTableError(
            "encryption (a file is encrypted)", table=self.scan.table.name, path=path
        )

    # ------------------------------------------------------------------ deletes

    @cached_property
    def _deletes(self) -> DeleteIndex | None:
        """The deletes that may matter, read when the first data file is left; None without."""
        manifests = self._delete_manifests
        if not self.scan.all_deletes:
            manifests = [each for each in manifests if self._opens(each)]
        if not manifests:
            return None
        from icesql.scan.deletes.delete_index import DeleteIndex

        return DeleteIndex.of(
            self.scan.table,
            self._delete_files(manifests),
            compare_bounds=self._prunes,
        )

    def _delete_files(self, manifests: Sequence[ManifestFile]) -> Iterator[DataFile]:
        counts = self.counts
        for manifest, entries in self._manifests.entries_of(manifests):
            counts.scanned_delete_manifests += 1
            live = kept = _live(entries)
            if not self.scan.all_deletes:
                # Deletes reach no further than the partition they are in, unless their spec has
                # none; then there is no predicate either.
                kept = self._in_partition(entries, live, self._specs.of(manifest), "delete")
                if self._filter is not ALWAYS_TRUE:
                    kept = self._with_matching_keys(entries, kept)
            counts.skipped_delete_files += len(live) - len(kept)
            for index in kept:
                delete = entries.data_file(index)
                if delete.key_metadata:
                    raise self._encrypted(delete.path)
                counts.indexed_delete_files += 1
                if delete.content == FileContent.EQUALITY_DELETES:
                    counts.equality_delete_files += 1
                elif delete.is_deletion_vector:
                    counts.dvs += 1
                else:
                    counts.positional_delete_files += 1
                yield delete

    def _with_matching_keys(self, entries: ManifestEntries, indexes: Sequence[int]) -> list[int]:
        from icesql.scan.deletes.delete_pruning import may_delete_matching_rows

        kept = may_delete_matching_rows(entries, indexes, self._filter, self.scan.schema)
        if self.scan.explain:
            from icesql.scan.pruning import skip_reasons

            remaining = set(kept)
            self.skipped += skip_reasons.skipped_by_metrics(
                entries,
                [index for index in indexes if index not in remaining],
                self._filter,
                self.scan.schema,
                "delete",
            )
        return kept


def _listed_again(scan: TableScan, path: str, manifest: ManifestFile, count: int) -> str:
    """The path of a live file that is listed once more; its rows come as often, as in Java.

    Raises CorruptFileError if the manifest list records fewer entries than the ``count`` in the
    manifest: then its writer did not intend the repetition.
    """
    expected = manifest.entries_count
    if expected is not None and count > expected:
        raise CorruptFileError(
            scan.table.storage.location(manifest.manifest_path),
            f"lists the live file {path} again, and has {count} entries where the manifest list "
            f"says {expected}",
        )
    return path


def _live(entries: FilterColumns) -> Sequence[int]:
    if all(entries.live):
        return range(entries.count)
    return [index for index, live in enumerate(entries.live) if live]


def _by_residual(
    entries: FilterColumns, indexes: Sequence[int], spec: SpecScan
) -> dict[Predicate, list[int]]:
    """The files by the residual of the filter in their partition, which may be ALWAYS_TRUE."""
    if spec.residuals.is_constant:
        return {spec.residuals.predicate: list(indexes)} if indexes else {}
    residual_of, partitions = spec.residuals.residual, entries.partition
    groups: dict[Predicate, list[int]] = {}
    # Residuals are shared by the files of a partition: comparing them once each is enough.
    seen: dict[int, tuple[Predicate, list[int]]] = {}
    for index in indexes:
        residual = residual_of(partitions[index])
        known = seen.get(id(residual))
        if known is None:
            known = seen[id(residual)] = residual, groups.setdefault(residual, [])
        known[1].append(index)
    return groups


def _until(
    rows_wanted: int, indexes: Sequence[int], record_counts: Sequence[int]
) -> tuple[Sequence[int], int]:
    """The shortest prefix holding ``rows_wanted`` rows, and the number still missing."""
    for position, index in enumerate(indexes):
        rows_wanted -= max(record_counts[index], 0)
        if rows_wanted <= 0:
            return indexes[: position + 1], rows_wanted
    return indexes, rows_wanted


def whole_files(scan: TableScan, query: QueryContext) -> ScanPlan | None:
    """The plan of a scan whose WHERE keeps every row of every file; None if that is not sure.

    ``left_out`` of the scan holds for the rows that its statement leaves out. Deleted rows count as
    rows.
    """
    unknown = scan.metadata_table is not None or scan.changes is not None
    if unknown or scan.table.planning is not None or scan.left_out is ALWAYS_TRUE:
        return None
    from icesql.scan.extreme_files import all_whole

    started = time.perf_counter()
    walk = _Walk(scan, query)
    files = tuple(walk.file_tasks())
    if not all_whole(files, walk):
        return None
    survivors = tuple(walk.survivors)
    return _planned(scan, query, started, files, counts=walk.counts, survivors=survivors)
