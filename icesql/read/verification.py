"""``SET verify = 'full'``: every manifest and file of a scan is read whole, and compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from msgspec.structs import replace

from icesql.context import Progress, QueryContext
from icesql.errors import CorruptFileError, UnsupportedTableError
from icesql.iceberg import types as t
from icesql.iceberg.bounds import decode_bound
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.manifest.entries import ADDED, DELETED, EXISTING, ManifestEntries
from icesql.iceberg.manifest.manifest import ManifestContent, ManifestFile
from icesql.iceberg.metadata.json_fields import whole_number
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.iceberg.schema import Schema
from icesql.read.deletes.scan_deletes import DeleteRelations
from icesql.read.task import read_file
from icesql.scan.manifest_reader import ManifestReader
from icesql.scan.plan import TableScan
from icesql.scan.tasks import FileScanTask, ScanContext, distinct_deletes

if TYPE_CHECKING:
    from icesql.scan.plan import ScanPlan


# ------------------------------------------------------------------ manifests
# Other engines do not check any of this, and neither does icesql without this setting.


def verify_snapshot(scan: TableScan, query: QueryContext) -> int:
    """Compare the manifests of a scan's snapshot with their list and the snapshot's summary.

    Reads every manifest and returns their number. Raises CorruptFileError for the first mismatch,
    and what planning raises.
    """
    snapshot = scan.snapshot
    if snapshot is None:
        return 0
    if scan.table.planning is not None:
        raise UnsupportedTableError(
            "verify = full where the catalog plans the scans", table=scan.table.name
        )
    storage = scan.table.storage
    reader = ManifestReader(scan.table, query)
    manifests = reader.manifests_of(snapshot)

    totals = Counter[str]()
    for manifest, entries in reader.entries_of(manifests):
        path = storage.location(manifest.manifest_path)
        length = storage.size(manifest.manifest_path)
        if manifest.manifest_length not in (None, length):
            raise CorruptFileError(
                path, f"{length} bytes long, its list says {manifest.manifest_length}"
            )
        for problem in (*_miscounts(manifest, entries), *_numbers(manifest, entries, snapshot)):
            raise CorruptFileError(path, problem)
        _count(totals, manifest, entries)
    place = snapshot.manifest_list or scan.table.metadata_location
    _compare(totals, snapshot, place)
    return len(manifests)


def _miscounts(manifest: ManifestFile, entries: ManifestEntries) -> Iterator[str]:
    for status, name in ((ADDED, "added"), (EXISTING, "existing"), (DELETED, "deleted")):
        files, rows = manifest.counts[status]
        counts = [
            count
            for each, count in zip(entries.status, entries.record_count, strict=True)
            if each == status
        ]
        if files not in (None, len(counts)):
            yield f"{len(counts)} {name} files, its list says {files}"
        if rows not in (None, sum(counts)):
            yield f"{sum(counts)} {name} rows, its list says {rows}"


def _numbers(manifest: ManifestFile, entries: ManifestEntries, snapshot: Snapshot) -> Iterator[str]:
    number = manifest.sequence_number
    if 0 < snapshot.sequence_number < number:
        yield f"sequence number {number}, that of its snapshot is {snapshot.sequence_number}"
    newest = max(entries.sequence_number, default=0)
    if 0 < number < newest:
        yield f"an entry of sequence number {newest}, that of the manifest is {number}"
    adders = {
        adder
        for adder, status in zip(entries.snapshot_id, entries.status, strict=True)
        if status == ADDED
    }
    if manifest.added_snapshot_id is not None and not adders <= {manifest.added_snapshot_id}:
        yield f"files that snapshot {manifest.added_snapshot_id}, its writer, did not add"


_TOTALS: Final = (
    "total-data-files",
    "total-records",
    "total-delete-files",
    "total-position-deletes",
    "total-equality-deletes",
)


def _count(totals: Counter[str], manifest: ManifestFile, entries: ManifestEntries) -> None:
    """Add the live files and rows of a manifest to those of its snapshot."""
    for index, live in enumerate(entries.live):
        if not live:
            continue
        kind, what = "data", "records"
        if manifest.content is ManifestContent.DELETES:
            by_position = entries.content[index] == FileContent.POSITION_DELETES
            kind, what = "delete", f"{'position' if by_position else 'equality'}-deletes"
        totals[f"total-{kind}-files"] += 1
        totals[f"total-{what}"] += entries.record_count[index]


def _compare(totals: Counter[str], snapshot: Snapshot, place: str) -> None:
    """Raises CorruptFileError where the summary has another total."""
    for name in _TOTALS:
        recorded = snapshot.summary.get(name, "")
        if whole_number(recorded) not in (None, totals[name]):
            raise CorruptFileError(
                place,
                f"{name} is {totals[name]}, the summary of snapshot {snapshot.snapshot_id} "
                f"says {recorded}",
            )


# ------------------------------------------------------------------ data files


# Types whose values Arrow orders as bounds do; for floats, all values but NaN.
_ORDERED = (
    t.BooleanType
    | t.IntegerType
    | t.LongType
    | t.DecimalType
    | t.DateType
    | t.TimeType
    | t.TimestampType
    | t.TimestamptzType
    | t.StringType
)


def verify(plans: Sequence[ScanPlan], query: QueryContext) -> tuple[str, ...]:
    """Verify the metadata and the files that ``plans`` read; returns notes for people.

    A file is verified once for as long as the connection remembers its version. Raises
    CorruptFileError for the first file that contradicts its manifest, StorageError, and
    QueryCancelledError.
    """
    manifests = sum(verify_snapshot(plan.scan, query) for plan in plans)
    done = _Done()
    for plan in plans:
        _Files(plan.context, query, done).verify(plan.files)
    known = f", {done.known} known from before" if done.known else ""
    return (
        f"verified: {manifests} manifest(s); {done.files} file(s), {done.size:,} bytes: "
        f"lengths, checksums, counts and bounds{known}",
        *done.notes,
    )


class _Done:
    def __init__(self) -> None:
        self.files = self.known = self.size = 0
        self.notes: list[str] = []


class _Files:
    """Verifies the files of one scan."""

    def __init__(self, context: ScanContext, query: QueryContext, done: _Done) -> None:
        self._context, self._query, self._done = context, query, done

    def verify(self, tasks: Sequence[FileScanTask]) -> None:
        """All files of the tasks."""
        deletes = distinct_deletes(tasks)
        relations = DeleteRelations(self._context, tasks, self._query) if deletes else None
        for number, delete in enumerate(deletes):
            self._query.check()
            self._once(delete, ("delete", delete.content_offset), self._delete_file)
            self._query.report(Progress("verifying deletes", number + 1, len(deletes)))
        for number, task in enumerate(tasks):
            self._query.check()
            self._once(task.data_file, ("data",), self._data_file)
            if relations is not None:
                self._positions(task, relations)
            self._query.report(Progress("verifying", number + 1, len(tasks)))

    def _once(self, file: DataFile, part: tuple[Any, ...], check: Any) -> None:
        storage, done = self._context.storage, self._done
        version = storage.version_of(file.path)
        key = None if version is None else ("verified", version, file.file_size_in_bytes, *part)
        if key is not None and storage.cache is not None and storage.cache.get(key):
            done.known += 1
            return
        location = storage.location(file.path)
        length = storage.size(file.path)
        if length != file.file_size_in_bytes:
            raise CorruptFileError(
                location, f"{length} bytes long, the manifest says {file.file_size_in_bytes}"
            )
        try:
            check(file, location)
        except UnsupportedTableError as error:
            done.notes.append(f"not verified: {error}")
            return
        done.files, done.size = done.files + 1, done.size + length
        if key is not None and storage.cache is not None:
            storage.cache.put(key, True, 200)

    # ------------------------------------------------------------------ data files

    def _data_file(self, file: DataFile, location: str) -> None:
        # The columns as the table has them today: others are never read.
        context = replace(self._context, projection=self._context.schema)
        columns = [_Column(field, file) for field in context.projection.fields]
        rows = 0
        task = FileScanTask(file, 0, max(file.file_size_in_bytes, 0))
        for batch in read_file(task, context, self._query):
            rows += batch.num_rows
            for column, array in zip(columns, batch.columns, strict=True):
                column.add(array)
        if 0 <= file.record_count != rows:
            raise CorruptFileError(
                location, f"the file holds {rows} rows, the manifest counts {file.record_count}"
            )
        for column in columns:
            if (problem := column.problem(rows)) is not None:
                raise CorruptFileError(location, problem)

    # ------------------------------------------------------------------ delete files

    def _delete_file(self, delete: DataFile, location: str) -> None:
        if delete.content is not FileContent.EQUALITY_DELETES:
            return  # read with the positions of their data files
        fields = self._context.file_schema.field_by_id
        keys = Schema(tuple(fields[key] for key in delete.equality_ids or () if key in fields))
        context = replace(self._context, projection=keys)
        task = FileScanTask(delete, 0, max(delete.file_size_in_bytes, 0))
        for _ in read_file(task, context, self._query):
            self._query.check()

    def _positions(self, task: FileScanTask, relations: DeleteRelations) -> None:
        positions, count = relations.named(task), task.data_file.record_count
        if positions is not None and len(positions) and 0 <= count <= positions[-1]:
            raise CorruptFileError(
                self._context.storage.location(task.data_file.path),
                f"row {positions[-1]} is deleted, and the file has {count} rows",
            )


class _Column(Struct):
    """A column of a file while it is read, and its metrics in the manifest."""

    field: t.NestedField
    file: DataFile
    nulls: int = 0
    nans: int = 0
    least: Any = None
    greatest: Any = None

    def add(self, array: Any) -> None:
        """Count a batch of values."""
        kind = self.field.type
        if not isinstance(kind, t.PrimitiveType) or not self._is_described:
            return
        self.nulls += array.null_count
        if t.is_floating(kind):
            nan = pc.is_nan(array).fill_null(False)
            self.nans += pc.sum(nan).as_py() or 0
            array = array.filter(pc.invert(nan))
        elif not isinstance(kind, _ORDERED):
            return
        if isinstance(kind, t.DateType):
            array = array.cast(pa.int32())
        elif isinstance(kind, t.TimeType | t.TimestampType | t.TimestamptzType):
            array = array.cast(pa.int64())
        found = pc.min_max(array).as_py()
        if found["min"] is not None:
            least, greatest = found["min"], found["max"]
            self.least = least if self.least is None else min(self.least, least)
            self.greatest = greatest if self.greatest is None else max(self.greatest, greatest)

    @property
    def _is_described(self) -> bool:
        file, key = self.file, self.field.field_id
        return any(
            key in (metrics or {})
            for metrics in (file.null_value_counts, file.lower_bounds, file.upper_bounds)
        )

    def problem(self, rows: int) -> str | None:
        """How the column contradicts its metrics, None when it does not."""
        file, key, name = self.file, self.field.field_id, self.field.name
        if not self._is_described or not isinstance(self.field.type, t.PrimitiveType):
            return None
        nulls = (file.null_value_counts or {}).get(key)
        if nulls not in (None, self.nulls):
            return f"column {name} holds {self.nulls} nulls, the manifest counts {nulls}"
        values = (file.value_counts or {}).get(key)
        # Some writers leave the nulls out.
        if values not in (None, rows, rows - self.nulls):
            return f"column {name} holds {rows} values, the manifest counts {values}"
        nans = (file.nan_value_counts or {}).get(key)
        if t.is_floating(self.field.type) and nans not in (None, self.nans):
            return f"column {name} holds {self.nans} NaN, the manifest counts {nans}"
        if self.least is None:
            return None
        return self._outside(file, key, name)

    def _outside(self, file: DataFile, key: int, name: str) -> str | None:
        for bounds, value, word in (
            (file.lower_bounds, self.least, "below the lower"),
            (file.upper_bounds, self.greatest, "above the upper"),
        ):
            stored = (bounds or {}).get(key)
            bound = None if stored is None else decode_bound(self.field.type, stored)
            if bound is None:
                continue
            wrong = value < bound if word.startswith("below") else value > bound
            if isinstance(value, str) and word.startswith("above"):
                # Bytes of UTF-8 order as code points do; some writers cut an upper bound.
                wrong = wrong and not value.startswith(str(bound))
            if wrong:
                return f"column {name} holds {value!r}, {word} bound {bound!r} of the manifest"
        return None
