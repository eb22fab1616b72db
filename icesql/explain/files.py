"""Every live data file of a scan's snapshot, with the decision of planning about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from icesql.frozen import Frozen
from icesql.iceberg.expressions.predicate import ALWAYS_FALSE, ALWAYS_TRUE
from icesql.iceberg.expressions.render import render_partition_value
from icesql.iceberg.manifest.entries import ManifestEntries
from icesql.iceberg.manifest.manifest import ManifestContent, ManifestFile
from icesql.scan.manifest_reader import ManifestReader
from icesql.scan.spec_scan import SpecScan, SpecScans

if TYPE_CHECKING:
    from icesql.context import QueryContext
    from icesql.scan.plan import ScanPlan, SkipRecord
    from icesql.scan.tasks.task import FileScanTask

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
