"""The data files of a scan: each live one with the decision of planning about it.

``estimate`` counts the files that a scan would read, before it runs. EXPLAIN FILE shows the
metadata of one file, and the step of planning that decided about it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from icesql.engine.duckdb.relations.grouping import group_files
from icesql.errors import ProgrammingError, plural
from icesql.frozen import Frozen
from icesql.iceberg.bounds import decode_bound
from icesql.iceberg.expressions.predicate import ALWAYS_FALSE, ALWAYS_TRUE, leaves
from icesql.iceberg.expressions.render import render_partition_value, render_predicate, render_value
from icesql.iceberg.manifest.entries import ManifestEntries
from icesql.iceberg.manifest.manifest import ManifestContent, ManifestFile
from icesql.iceberg.schema import METADATA_IDS
from icesql.iceberg.types import leaf_ids
from icesql.scan.manifest_reader import ManifestReader
from icesql.scan.spec_scan import SpecScan, SpecScans

if TYPE_CHECKING:
    from icesql.context import QueryContext
    from icesql.iceberg.manifest.data_file import DataFile
    from icesql.scan.plan import ScanPlan, SkipRecord
    from icesql.scan.tasks import FileScanTask


NO_PARTITION = "unpartitioned"


class Decision(Frozen):
    """Whether a file or manifest is read. ``stage`` is the planning step that skipped it, "" if it
    is kept; ``why`` is the condition and the value that decided."""

    kept: bool
    stage: str = ""
    why: str = ""

    def __str__(self) -> str:
        if self.kept:
            return "kept"
        word = "counted from metadata" if self.stage == "count" else f"skipped by {self.stage}"
        return f"{word}: {self.why}" if self.why else word


class ExplainedFile(Frozen):
    """One live data file: its place in a manifest, and the task that reads it if it is kept."""

    entries: ManifestEntries
    index: int
    partition: str
    decision: Decision
    task: FileScanTask | None

    @property
    def path(self) -> str:
        """The path in the metadata."""
        return self.entries.path[self.index]

    @property
    def rows(self) -> int:
        """Rows in the file; negative if its writer did not record them."""
        return self.entries.record_count[self.index]

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self.entries.file_size_in_bytes[self.index]

    @property
    def row_groups(self) -> int | None:
        """The number of row groups recorded in the manifest, or None."""
        offsets = self.entries.data_file(self.index).split_offsets
        return len(offsets) if offsets else None


class ExplainedManifest(Frozen):
    """One data manifest; ``files`` is empty for a skipped manifest that was not opened."""

    manifest: ManifestFile
    decision: Decision
    files: tuple[ExplainedFile, ...] = ()


def explained_manifests(
    plan: ScanPlan, query: QueryContext, *, open_all: bool = False
) -> Iterator[ExplainedManifest]:
    """The data manifests of a scan with their live files, in the order of the snapshot.

    ``open_all`` also opens skipped manifests, whose files get the manifest's decision. Empty for
    metadata tables, changes and tables without a snapshot. Raises as planning.
    """
    scan = plan.scan
    if scan.snapshot is None or plan.metadata is not None or plan.changes is not None:
        return
    specs = SpecScans(ALWAYS_TRUE, scan.schema, scan.table.metadata)
    reader = ManifestReader(scan.table, query, specs.form_of)
    skipped = {(each.kind, each.path): each for each in plan.skipped}
    tasks = {task.data_file.path: task for task in plan.files}
    data = [
        each
        for each in reader.manifests_of(scan.snapshot)
        if each.content is ManifestContent.DATA and each.has_live_files
    ]
    opened = [each for each in data if open_all or ("manifest", each.manifest_path) not in skipped]
    entries_of = reader.entries_of(opened)
    for manifest in data:
        record = skipped.get(("manifest", manifest.manifest_path))
        if record is not None and not open_all:
            yield ExplainedManifest(manifest, _decided(record))
            continue
        _, entries = next(entries_of)
        files = tuple(
            ExplainedFile(
                entries,
                index,
                _partition_text(specs.of(manifest), entries.partition[index]),
                _decision(plan, record or skipped.get(("file", path)), path in tasks),
                tasks.get(path),
            )
            for index, path in enumerate(entries.path)
            if entries.live[index]
        )
        yield ExplainedManifest(manifest, Decision(True), files)


def _decided(record: SkipRecord) -> Decision:
    why = f"{record.predicate}; {record.reason}" if record.predicate else record.reason
    return Decision(False, record.stage, why)


def _decision(plan: ScanPlan, record: SkipRecord | None, kept: bool) -> Decision:
    if kept:
        return Decision(True)
    if record is not None:
        return _decided(record)
    if plan.planned_by is not None:
        return Decision(False, "the catalog", "which planned the scan and does not say why")
    if plan.scan.row_filter is ALWAYS_FALSE:
        return Decision(False, "filter", "no row can match")
    return Decision(False, "limit", "other files have rows enough")


def _partition_text(spec: SpecScan, values: Sequence[object]) -> str:
    texts = [
        f"{field.name}={render_partition_value(field, value, schema=spec.partition_schema)}"
        for field, value in zip(spec.spec.fields, values, strict=False)
    ]
    return ", ".join(texts) or NO_PARTITION


# ------------------------------------------------------------------ estimate


def estimate(plan: ScanPlan) -> dict[str, Any]:
    """The rows, files and bytes of a plan, as JSON values.

    ``rows`` is the number of rows in the files before any filter, an upper bound of the result;
    None if a file's row count is unknown, or the rows come from metadata. ``columns`` are the
    stored bytes of each projected column, None if a manifest does not record them.
    """
    counts = [task.data_file.record_count for task in plan.files]
    known = plan.metadata is None and plan.changes is None and all(each >= 0 for each in counts)
    return {
        "rows": sum(counts) if known else None,
        "files": len(plan.files),
        "delete_files": plan.report.distinct_delete_files,
        "bytes": plan.projected_bytes,
        "delete_bytes": plan.counts.total_delete_file_size_in_bytes,
        "columns": _columns(plan),
    }


def _columns(plan: ScanPlan) -> dict[str, int | None]:
    found: dict[str, int | None] = {}
    for column in plan.scan.projection.fields:
        if column.field_id in METADATA_IDS or plan.metadata is not None:
            continue
        found[column.name] = None if plan.planned_by else _stored(plan, leaf_ids((column,)))
    return found


def _stored(plan: ScanPlan, leaves: tuple[int, ...]) -> int | None:
    total = 0
    for each in plan.survivors:
        sizes = [each.entries.values_of("column_sizes", leaf) for leaf in leaves]
        for index in each.indexes:
            known = [size for column in sizes if (size := column[index]) is not None]
            if not known:
                return None
            total += sum(known)
    return total


def estimate_text(plan: ScanPlan) -> str:
    """One line about the reads of a scan: rows, files, bytes by column."""
    found = estimate(plan)
    if plan.scan.frame is not None:
        return "estimate: unknown, it is a DataFrame"
    if plan.metadata is not None:
        return "estimate: from metadata alone"
    rows = "an unknown number of" if found["rows"] is None else f"at most {found['rows']:,}"
    known = [f"{name} {size:,}" for name, size in found["columns"].items() if size is not None]
    columns = f" ({', '.join(known)})" if known else ""
    deletes = f", {plural(found['delete_files'], 'delete file')}" if found["delete_files"] else ""
    files = plural(found["files"], "file")
    return f"estimate: {rows} rows, {files}{deletes}, {found['bytes']:,} bytes{columns}"


# ------------------------------------------------------------------ one file


_MOST_LISTED: Final = 5


def one_file(path: str, plans: Sequence[ScanPlan], query: QueryContext) -> list[str]:
    """The lines about the file whose path is, or ends with, ``path``, for each scan that has it.

    Raises ProgrammingError if no live file of the tables has such a path, or several have.
    """
    lines: list[str] = []
    for number, plan in enumerate(plans):
        found = [
            (manifest, file)
            for manifest in explained_manifests(plan, query, open_all=True)
            for file in manifest.files
            if _is_meant(path, file.path)
        ]
        exact = [each for each in found if each[1].path == path]
        found = exact or found
        if len(found) > 1:
            some = ", ".join(file.path for _, file in found[:_MOST_LISTED])
            raise ProgrammingError(
                f"{len(found)} files of {plan.scan.table.name} end with {path!r}: {some}"
                f"{', …' if len(found) > _MOST_LISTED else ''}; give more of the path"
            )
        if found:
            manifest, file = found[0]
            lines.append(f"scan {number}: {plan.scan.table.name}")
            lines += [f"  {line}" for line in _lines(manifest, file, plan, query)]
    if lines:
        return lines
    tables = ", ".join(dict.fromkeys(plan.scan.table.name for plan in plans)) or "no table"
    raise ProgrammingError(
        f"no live data file of {tables} at the snapshot of this query ends with {path!r}; "
        "SELECT file_path FROM the_table.files lists them"
    )


def _is_meant(wanted: str, path: str) -> bool:
    return path == wanted or path.endswith("/" + wanted.lstrip("/"))


def _lines(
    manifest: ExplainedManifest, file: ExplainedFile, plan: ScanPlan, query: QueryContext
) -> Iterator[str]:
    data_file = file.entries.data_file(file.index)
    yield f"file: {file.path}"
    yield f"manifest: {manifest.manifest.manifest_path}"
    yield f"partition: {file.partition} (spec {data_file.spec_id})"
    groups = f", {plural(file.row_groups, 'row group')}" if file.row_groups else ""
    rows = f"{file.rows:,}" if file.rows >= 0 else "an unknown number of"
    yield f"rows: {rows} in {file.size:,} bytes of {data_file.file_format}{groups}"
    yield f"added by snapshot: {data_file.snapshot_id}, sequence number {data_file.sequence_number}"
    yield from _bounds(data_file, plan)
    yield f"decision: {file.decision}"
    if file.task is None:
        return
    yield f"residual: {render_predicate(file.task.residual, plan.scan.schema)}"
    for delete in file.task.deletes:
        yield f"delete file: {_delete_text(delete)}"
    (group,) = group_files((file.task,), plan.context, query.settings, stores=True)
    yield f"reader: {group.label}"


def _bounds(file: DataFile, plan: ScanPlan) -> Iterator[str]:
    """Bounds and counts of each column that the query reads or filters."""
    scan = plan.scan
    wanted = {each.term.field_id for each in leaves(scan.row_filter)}
    wanted |= {each.field_id for each in scan.projection.fields}
    for field_id in sorted(wanted & set(scan.schema.field_by_id)):
        kind = scan.schema.field_by_id[field_id].type
        facts = []
        for word, bounds in (("at least", file.lower_bounds), ("at most", file.upper_bounds)):
            raw = None if bounds is None else bounds.get(field_id)
            value = None if raw is None else decode_bound(kind, raw)
            if value is not None:
                facts.append(f"{word} {render_value(kind, value)}")
        for word, counts in (("NULL", file.null_value_counts), ("NaN", file.nan_value_counts)):
            count = None if counts is None else counts.get(field_id)
            if count is not None:
                facts.append(f"{count:,} {word}")
        name = scan.schema.name_by_id.get(field_id, str(field_id))
        yield f"column {name}: {', '.join(facts) or 'no bounds and no counts'}"


def _delete_text(delete: DataFile) -> str:
    kind = "positions"
    if delete.equality_ids:
        kind = f"equality of columns {', '.join(map(str, delete.equality_ids))}"
    elif delete.is_deletion_vector:
        kind = "deletion vector"
    count = f"{delete.record_count:,} rows" if delete.record_count >= 0 else "rows unknown"
    return f"{delete.path} ({kind}, {count}, sequence number {delete.sequence_number})"
