"""TableScan, which requests a scan of a table, and ScanPlan, which planning gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from msgspec import field
from msgspec.structs import asdict, replace

from icesql.catalog.table import Table
from icesql.config import Settings
from icesql.errors import ProgrammingError, ScanLimitError
from icesql.frozen import Frozen
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Predicate, keep_columns
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.manifest.entries import ManifestEntries
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.iceberg.schema import Schema
from icesql.iceberg.types import leaf_ids
from icesql.scan.report import ScanCounts, ScanReport
from icesql.scan.tasks import (
    CombinedScanTask,
    FileScanTask,
    ScanContext,
    distinct_deletes,
    without_metrics,
)

if TYPE_CHECKING:
    from icesql.context import QueryContext
    from icesql.scan.changes import ChangePlan, ChangeScan
    from icesql.scan.metadata_tables.rows import MetadataRows
    from icesql.scan.pruning.extremes import Extreme
    from icesql.scan.pruning.file_conditions import FileCondition
    from icesql.scan.pruning.metadata_count import Counted
    from icesql.scan.tasks import Packing


# ------------------------------------------------------------------ requests


class TableScan(Frozen):
    """One table at one snapshot, with what was pushed into it.

    ``snapshot`` is None for a table without rows yet. ``schema`` is the schema to read by (that of
    the snapshot, or the current one of a branch); ``projection`` the output columns: top-level
    columns of ``schema``, and metadata columns by their reserved ids. ``row_filter`` names fields
    of ``schema`` by id and is implied by the WHERE, which is evaluated again over the rows.
    ``file_conditions`` are implied by the WHERE too, and rule out files that ``row_filter`` cannot.
    ``limit`` may be set only if any rows of the scan will do, which an ORDER BY or a WHERE of any
    kind rules out. ``ref`` is the branch or tag of the reference. With ``explain`` the plan records
    why each file was skipped. ``metadata_table`` is the name of a metadata table to read instead of
    the table's own rows. ``extremes`` are the only rows that matter, if any are set. ``counts`` has
    one item for each output of the query if some of them count rows and the others are
    ``extremes``. With either, ``left_out`` holds for every row for which the WHERE is not true.
    ``values_only``: one of several equal rows is enough. ``rows_alike``: equal rows may be
    represented by one row and their number. ``rows`` returns the rows of a statement in FROM that
    is not a table; then ``metadata_table`` names what the statement shows. ``all_deletes``: a
    remaining file has all its deletes, also of rows that the filter excludes. ``changes`` are read
    instead of rows; ``schema`` then has the columns of a change, too. ``frame`` is the DataFrame of
    Spark that is read, with the columns of ``schema`` in their order; ``rows`` then only refuses.
    """

    table: Table
    snapshot: Snapshot | None
    schema: Schema
    projection: Schema
    row_filter: Predicate = ALWAYS_TRUE
    file_conditions: tuple[FileCondition, ...] = ()
    limit: int | None = None
    ref: str | None = None
    explain: bool = False
    metadata_table: str | None = None
    extremes: tuple[Extreme, ...] = ()
    counts: tuple[Counted | None, ...] = ()
    left_out: Predicate = ALWAYS_TRUE
    changes: ChangeScan | None = None
    values_only: bool = False
    rows_alike: bool = False
    all_deletes: bool = False
    rows: Callable[[TableScan, QueryContext], Iterable[tuple[Any, ...]]] | None = None
    frame: Any = None

    def trusted(self, predicate: Predicate) -> Predicate:
        """``predicate`` without columns whose metrics may differ from the values read.

        In a file without field ids a column that the name mapping leaves out reads as NULL,
        whatever counts and bounds the manifest has for it.
        """
        mapping = self.table.metadata.name_mapping
        return predicate if mapping is None else keep_columns(predicate, mapping.field_ids)


# ------------------------------------------------------------------ plans


# Limits on what a query may read: checked after planning, before any data is read.


def check_limits(
    plans: Sequence[ScanPlan], settings: Settings, first: Collection[int] = ()
) -> None:
    """Raise ScanLimitError if the scans of a query exceed what ``settings`` allow.

    ``max_scan_files`` counts data and delete files, ``max_scan_bytes`` the stored bytes of the
    projected columns and of delete files, both over all scans of the query: a table that is
    scanned twice counts twice. ``require_partition_filter`` requires each scan of a partitioned
    table to have a filter that can skip partitions. Metadata tables read no data and are not
    limited.

    ``first`` are the scans that are read to narrow the others. With any, the limits hold for these
    alone: the files of the others are known only afterwards, and must be checked then.
    """
    scanned = [each for each in plans if each.metadata is None]
    if settings.require_partition_filter:
        for plan in scanned:
            _check_partition_filter(plan, settings)
    if first:
        scanned = [plans[each] for each in sorted(set(first)) if plans[each].metadata is None]

    def files(plan: ScanPlan) -> int:
        return len(plan.files) + plan.report.distinct_delete_files

    def size(plan: ScanPlan) -> int:
        return plan.projected_bytes + plan.report.total_delete_file_size_in_bytes

    for what, number_of in (("files", files), ("bytes", size)):
        setting = f"max_scan_{what}"
        limit = getattr(settings, setting)
        if limit is not None and (found := sum(map(number_of, scanned))) > limit:
            raise ScanLimitError(
                f"the query would read {found:,} {what}, which is more than {setting} = {limit:,}: "
                f"filter further, select fewer columns, or raise {setting} (EXPLAIN shows what is "
                "read)"
            )


def _check_partition_filter(plan: ScanPlan, settings: Settings) -> None:
    from icesql.iceberg.expressions.predicate import ALWAYS_TRUE
    from icesql.iceberg.expressions.projection import inclusive
    from icesql.iceberg.transforms import Void, parse_transform

    scan = plan.scan
    spec = scan.table.metadata.spec
    transforms = [each.transform for each in spec.fields]
    fields = [
        f"{name} ({transform})"
        for name, transform in zip(_sources(plan), transforms, strict=True)
        if not isinstance(parse_transform(transform), Void)
    ]
    if not fields or scan.snapshot is None or scan.changes is not None:
        return
    if inclusive(scan.row_filter, spec, scan.schema) is not ALWAYS_TRUE:
        return
    because = " (prune is off, so no filter skips any)" if not settings.prune else ""
    raise ScanLimitError(
        f"the query has no filter on the partition columns of {scan.table.name}{because}, which "
        f"require_partition_filter asks for: filter by {' or '.join(fields)}"
    )


def _sources(plan: ScanPlan) -> list[str]:
    """The columns of each partition field, as the newest schema names them."""
    schema = plan.scan.table.metadata.schema
    return [
        ", ".join(schema.name_by_id.get(each, str(each)) for each in field.source_ids)
        for field in plan.scan.table.metadata.spec.fields
    ]


class SkipRecord(Frozen):
    """Why a manifest, data file or delete file is not read.

    ``stage`` is "partition summary", "partition", "metrics", "order" or "count"; ``predicate`` the
    leaf that decided, or the words of the query, and ``reason`` the value or bound it met.
    """

    kind: Literal["manifest", "file", "delete"]
    path: str
    stage: str
    predicate: str
    reason: str


class Survivors(Frozen):
    """The entries of one manifest and the indexes of those that a plan reads."""

    entries: ManifestEntries
    indexes: Sequence[int]

    def stored_bytes(self, field_ids: Sequence[int]) -> int:
        """Bytes of these columns in the files; of a whole file that has no column sizes."""
        entries = self.entries
        columns = [entries.values_of("column_sizes", field_id) for field_id in field_ids]
        maps = entries.maps.get("column_sizes")
        total = 0
        for index in self.indexes:
            sizes = [size for column in columns if (size := column[index]) is not None]
            if sizes or (maps is not None and maps[index]):
                total += sum(sizes)
            else:
                total += entries.file_size_in_bytes[index]
        return total


class NeededFiles(Frozen):
    """The ``files`` to read, and the contribution of ``left_out`` others from metadata.

    Those add ``counts`` to the outputs of the query, () for nothing, or are replaced by ``rows`` of
    the projection, in the internal form of ``iceberg.types``: each repeated as ``copies`` say, ()
    for once.
    """

    files: tuple[FileScanTask, ...]
    left_out: int = 0
    counts: tuple[int, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    copies: tuple[int, ...] = ()


class ScanPlan(Frozen, dict=True):
    """The files to read for one scan; immutable.

    ``files`` are whole files in the order of the manifests. ``skipped`` is empty unless the scan is
    one to explain. ``counted`` is the number that ``files_counted`` files that are not read add to
    each output of the query, () if there are none; ``constants`` are rows of the projection that
    replace such files, in the internal form of ``iceberg.types``; ``constant_counts`` are their
    repetitions, () for once. ``metadata`` has the rows of a metadata table, which has no files.
    ``rows_read`` is the Arrow table of all rows, columns named ``c<field id>``, where they were
    read to learn the keys that limit another scan. ``changes`` say what to compare; ``files`` are
    then all that are read for it. ``planned_by`` says how the catalog planned the scan, None where
    icesql did. ``repeated`` are the data files that the table lists more than once, whose rows come
    as often. ``tasks``, ``report`` and ``projected_bytes`` are worked out on first use.
    """

    scan: TableScan
    context: ScanContext
    files: tuple[FileScanTask, ...]
    settings: Settings = field(default_factory=Settings)
    skipped: tuple[SkipRecord, ...] = ()
    counts: ScanCounts = field(default_factory=ScanCounts)
    survivors: tuple[Survivors, ...] = ()
    planning_seconds: float = 0.0
    limit_reached: bool = False
    counted: tuple[int, ...] = ()
    files_counted: int = 0
    metadata: MetadataRows | None = None
    rows_read: Any = None
    constants: tuple[tuple[Any, ...], ...] = ()
    constant_counts: tuple[int, ...] = ()
    changes: ChangePlan | None = None
    planned_by: str | None = None
    repeated: tuple[str, ...] = ()

    @cached_property
    def rows_in_files(self) -> int:
        """How many rows the files have at most; those of unknown number count as none."""
        return sum(max(task.data_file.record_count, 0) for task in self.files)

    @cached_property
    def packing(self) -> Packing:
        """How ``tasks`` are packed, by settings and table properties.

        Raises ProgrammingError for a property that is not a usable number.
        """
        from icesql.scan.tasks import Packing

        return Packing.choose(self.settings, self.scan.table.metadata.properties)

    @cached_property
    def tasks(self) -> tuple[CombinedScanTask, ...]:
        """All bytes of ``files`` exactly once, as tasks of about the same weight.

        Their data files are without the metrics that only planning looks at.
        """
        from icesql.scan.tasks import pack_files

        bare = (replace(task, data_file=without_metrics(task.data_file)) for task in self.files)
        return tuple(
            CombinedScanTask(group, self.context) for group in pack_files(bare, self.packing)
        )

    @property
    def has_deletes(self) -> bool:
        """Whether delete files apply to any of the files."""
        return any(task.deletes for task in self.files)

    @cached_property
    def record_count(self) -> int | None:
        """The number of rows before any filter; None if metadata does not give it exactly.

        Deletes make it unknown, as does a file without a record count.
        """
        if self.changes is not None or self.metadata is not None:
            return None
        counts = [task.data_file.record_count for task in self.files]
        return None if self.has_deletes or any(each < 0 for each in counts) else sum(counts)

    @cached_property
    def projected_bytes(self) -> int:
        """Stored bytes of the projected columns; of whole files where manifests have no sizes."""
        leaves = projected_leaves(self.scan.projection)
        if not leaves or self.metadata is not None:
            return 0
        if self.changes is not None:
            return sum(task.data_file.file_size_in_bytes for task in self.files)
        if len(leaves) == len(projected_leaves(self.scan.schema)):
            return self.counts.total_file_size_in_bytes
        if self.planned_by is not None:
            return sum(_stored_bytes(task.data_file, leaves) for task in self.files)
        return sum(each.stored_bytes(leaves) for each in self.survivors)

    @cached_property
    def report(self) -> ScanReport:
        """The counts of this plan, with the snapshot, filter and columns of the scan."""
        scan = self.scan
        names = {column.field_id: column.name for column in scan.projection.fields}
        return ScanReport(
            table_name=scan.table.name,
            snapshot_id=None if scan.snapshot is None else scan.snapshot.snapshot_id,
            ref=scan.ref,
            schema_id=scan.schema.schema_id,
            filter=str(scan.row_filter),
            projected_field_ids=tuple(names),
            projected_field_names=tuple(names.values()),
            planning_seconds=self.planning_seconds,
            projected_bytes=self.projected_bytes,
            distinct_data_files=len({task.data_file.path for task in self.files}),
            # Tasks share their deletes: each delete file is one object however often it applies.
            distinct_delete_files=len(distinct_deletes(self.files)),
            limit_reached=self.limit_reached,
            **asdict(self.counts),
        )


def _stored_bytes(file: DataFile, field_ids: Sequence[int]) -> int:
    sizes = file.column_sizes
    if sizes is None:
        return file.file_size_in_bytes
    return sum(sizes.get(each, 0) for each in field_ids)


def projected_leaves(projection: Schema) -> tuple[int, ...]:
    """Ids of the stored columns below the projected ones; metadata columns are not stored."""
    from icesql.iceberg.schema import METADATA_IDS

    stored = tuple(column for column in projection.fields if column.field_id not in METADATA_IDS)
    return leaf_ids(stored)


def scan_context(scan: TableScan) -> ScanContext:
    """The context that all tasks of ``scan`` share."""
    metadata = scan.table.metadata
    return ScanContext(
        table=scan.table.name,
        schema=scan.schema,
        projection=scan.projection,
        file_schema=metadata.file_schema,
        specs=metadata.specs,
        storage=scan.table.storage,
        format_version=metadata.format_version,
        name_mapping=metadata.name_mapping,
    )


# ------------------------------------------------------------------ repeated files
# Data files that a table lists more than once: their rows come as often, as in other engines.
#
# ``add_files`` makes them with files that the table already has, if its check is switched off. A
# change of some of their rows would have to distinguish the listings, which no delete can.


def repeated_note(plan: ScanPlan) -> str:
    """The note for a plan that reads such files."""
    first, *more = plan.repeated
    others = f" and {len(more)} more" if more else ""
    table = plan.scan.table.name
    return (
        f"{table} lists {first}{others} more than once, and its rows come as often; "
        f"{_mended(table)} gives each of them a place of its own"
    )


def refuse_repeated(files: Iterable[FileScanTask], table: str) -> None:
    """Raise ProgrammingError for a change of rows in a file that is listed more than once."""
    times = Counter(each.data_file.path for each in files)
    for path, count in times.items():
        if count > 1:
            raise ProgrammingError(
                f"{table} lists {path} {count} times, so that none of its rows can change alone; "
                f"{_mended(table)} gives each of them a place of its own, then run this again"
            )


def _mended(table: str) -> str:
    return (
        f"CALL system.rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true'))"
    )
