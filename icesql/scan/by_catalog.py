"""Plan a scan through the catalog, and check its response as untrusted input.

The catalog lists the deletes of each file and sends no sequence numbers, so neither planning nor
reading compares sequence numbers (``ScanContext.paired``).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from icesql.catalog.table import CatalogPlan, Planning
from icesql.context import QueryContext
from icesql.errors import CorruptFileError, UnsupportedTableError
from icesql.iceberg.expressions.predicate import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    And,
    Leaf,
    Or,
    Predicate,
)
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.metadata.json_fields import Malformed, load_json
from icesql.iceberg.rest_json import (
    ContentFile,
    FileTask,
    ScanTasks,
    data_file,
    parse_predicate,
    predicate_json,
)
from icesql.iceberg.schema import LAST_UPDATED_SEQUENCE_NUMBER, METADATA_IDS, SNAPSHOT_ID
from icesql.scan.plan import ScanPlan, TableScan, scan_context
from icesql.scan.report import ScanCounts
from icesql.scan.spec_scan import SpecScan, SpecScans
from icesql.scan.tasks import FileScanTask, content_bytes
from icesql.storage.open import is_local

# Implication between predicates, as far as their structure shows it.


class Implication:
    """Decides implication; results are cached, so the cost is at most the product of the sizes.

    >>> from icesql.iceberg.expressions.predicate import Operation, Term
    >>> a, b, c = (Leaf(Operation.IS_NULL, Term(number, "x")) for number in (1, 2, 3))
    >>> Implication().holds(a & b, b | c), Implication().holds(a | b, a)
    (True, False)
    """

    def __init__(self) -> None:
        # The predicates are kept so that no other gets their id.
        self._known: dict[tuple[int, int], tuple[bool, Predicate, Predicate]] = {}

    def holds(self, known: Predicate, wanted: Predicate) -> bool:
        """Whether ``known`` implies ``wanted``; False also where that cannot be shown."""
        key = id(known), id(wanted)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = (self._holds(known, wanted), known, wanted)
        return found[0]

    def _holds(self, known: Predicate, wanted: Predicate) -> bool:
        if wanted is ALWAYS_TRUE or known is ALWAYS_FALSE:
            return True
        if isinstance(known, Leaf) and isinstance(wanted, Leaf):
            return _range_of(known) == _range_of(wanted)
        if isinstance(wanted, And):
            return self.holds(known, wanted.left) and self.holds(known, wanted.right)
        if isinstance(known, Or):
            return self.holds(known.left, wanted) and self.holds(known.right, wanted)
        # An Or on the right follows from one of its sides, or from one side of an And on the left.
        if isinstance(wanted, Or) and (
            self.holds(known, wanted.left) or self.holds(known, wanted.right)
        ):
            return True
        if isinstance(known, And):
            return self.holds(known.left, wanted) or self.holds(known.right, wanted)
        return False


def _range_of(leaf: Leaf) -> tuple[object, ...]:
    """The identity of a leaf, without the name that its column had."""
    return leaf.operation, leaf.term.field_id, leaf.term.transform, leaf.literal


# Metadata columns whose values a catalog does not send.
_UNKNOWN: Final = (LAST_UPDATED_SEQUENCE_NUMBER, SNAPSHOT_ID)


def plan_by_catalog(
    scan: TableScan, planning: Planning, row_filter: Predicate, query: QueryContext
) -> ScanPlan:
    """The files of ``scan`` as its catalog gives them, with their deletes.

    ``row_filter`` is the predicate that may prune, implied by that of the scan. Raises CatalogError
    for a response that contradicts itself or the table's metadata; UnsupportedTableError for
    metadata columns that the response has no values for, for changes, for encrypted files, and if
    the catalog leaves out requested rows.
    """
    started = time.perf_counter()
    name = scan.table.name
    if scan.changes is not None:
        raise UnsupportedTableError("changes of rows where the catalog plans the scans", table=name)
    for column in scan.projection.fields:
        if column.field_id in {each.field_id for each in _UNKNOWN}:
            raise UnsupportedTableError(
                f"the column {column.name} where the catalog plans the scans", table=name
            )
    counts = ScanCounts()
    files: tuple[FileScanTask, ...] = ()
    planned_by = "no request was sent"
    if scan.snapshot is not None and row_filter is not ALWAYS_FALSE and scan.limit != 0:
        body = _request_body(scan, row_filter, query)
        answer = planning.plan(body, _rows_wanted(scan, query), query)
        planned_by = answer.description
        if answer.storage is not None:
            scan = replace(scan, table=replace(scan.table, storage=answer.storage))
        files = _Tasks(scan, row_filter, body.get("filter", True), counts, query).of(answer)
    wanted = _rows_wanted(scan, query)
    enough = None if wanted is None else _with_rows(files, wanted)
    return ScanPlan(
        scan=scan,
        context=replace(scan_context(scan), paired=True),
        files=files if enough is None else enough,
        settings=query.settings,
        counts=counts,
        planning_seconds=time.perf_counter() - started,
        limit_reached=enough is not None,
        planned_by=planned_by,
    )


def _request_body(scan: TableScan, row_filter: Predicate, query: QueryContext) -> dict[str, Any]:
    """The request: a snapshot, the names of the columns to read, and a filter for pruning."""
    assert scan.snapshot is not None
    metadata = scan.table.metadata
    body: dict[str, Any] = {
        "snapshot-id": scan.snapshot.snapshot_id,
        "use-snapshot-schema": scan.schema.schema_id != metadata.current_schema_id,
        "case-sensitive": True,
    }
    own = [each for each in scan.projection.fields if each.field_id not in METADATA_IDS]
    if len(own) < len(scan.schema.fields):
        # Omitted for all columns: Iceberg's own server rejects the name of a list of variants.
        body["select"] = [column.name for column in own]
    if not query.settings.prune:
        return body
    filter_json = predicate_json(row_filter, scan.schema)
    if filter_json is not True:
        body["filter"] = filter_json
    # No min-rows-requested: Iceberg's own server takes a file for a row, deleted or not.
    return body


def _rows_wanted(scan: TableScan, query: QueryContext) -> int | None:
    """The number of rows that suffice, None if some rows of a file may not match."""
    if scan.row_filter is not ALWAYS_TRUE or not query.settings.prune:
        return None
    return scan.limit


def _with_rows(files: tuple[FileScanTask, ...], wanted: int) -> tuple[FileScanTask, ...] | None:
    """The first files that have so many rows without looking at deletes, None if all are needed."""
    chosen = []
    for task in files:
        if not task.deletes:
            chosen.append(task)
            wanted -= max(task.data_file.record_count, 0)
            if wanted <= 0:
                return tuple(chosen)
    return None


class _Tasks:
    """Tasks from the responses of a catalog."""

    def __init__(
        self,
        scan: TableScan,
        row_filter: Predicate,
        body: Any,
        counts: ScanCounts,
        query: QueryContext,
    ) -> None:
        self._scan, self._counts, self._query = scan, counts, query
        self._filter = row_filter if query.settings.prune else ALWAYS_TRUE
        # The predicate sent to the catalog is implied by the filter; residuals may repeat its form.
        self._known = self._filter & parse_predicate(body, scan.schema)
        self._specs = SpecScans(self._filter, scan.schema, scan.table.metadata)
        self._seen: set[str] = set()
        self._deletes: dict[tuple[str, int | None], DataFile] = {}
        self._residuals: dict[tuple[bytes, int], tuple[bool, Predicate]] = {}
        self._implication = Implication()
        self._is_remote = not is_local(scan.table.metadata.location)

    def of(self, plan: CatalogPlan) -> tuple[FileScanTask, ...]:
        """The tasks of all responses, in their order."""
        found = [task for each in plan.answers for task in self._of_answer(each)]
        distinct = self._deletes.values()
        counts = self._counts
        counts.result_data_files = len(found)
        counts.equality_delete_files = sum(
            each.content is FileContent.EQUALITY_DELETES for each in distinct
        )
        counts.dvs = sum(each.is_deletion_vector for each in distinct)
        counts.positional_delete_files = len(distinct) - counts.equality_delete_files - counts.dvs
        counts.indexed_delete_files = len(distinct)
        return tuple(found)

    def _of_answer(self, answer: ScanTasks) -> list[FileScanTask]:
        self._query.check()
        deletes = [self._delete(each) for each in answer.delete_files or ()]
        found = []
        for task in answer.file_scan_tasks or ():
            made = self._task(task, deletes)
            if made is not None:
                found.append(made)
        return found

    def _task(self, sent: FileTask, deletes: Sequence[DataFile]) -> FileScanTask | None:
        file, spec = self._file(sent.data_file)
        if file.content is not FileContent.DATA:
            raise self._contradiction(f"the file {file.path} to read is one of deletes")
        if file.path in self._seen:
            raise self._contradiction(f"the file {file.path} is to be read twice")
        self._seen.add(file.path)
        residual = spec.residuals.residual(file.partition)
        self._check_residual(bytes(sent.residual_filter), residual, file)
        if residual is ALWAYS_FALSE:
            self._counts.skipped_data_files += 1
            return None
        attached: list[DataFile] = []
        for number in dict.fromkeys(sent.delete_file_references or ()):
            if not 0 <= number < len(deletes):
                raise self._contradiction(
                    f"the file {file.path} refers to delete file {number} of {len(deletes)}"
                )
            self._check_vector(deletes[number], attached, file)
            attached.append(deletes[number])
        counts = self._counts
        counts.result_delete_files += len(attached)
        counts.total_delete_file_size_in_bytes += content_bytes(attached)
        counts.total_file_size_in_bytes += file.file_size_in_bytes
        return FileScanTask(file, 0, file.file_size_in_bytes, tuple(attached), residual)

    # ------------------------------------------------------------------ files

    def _file(self, sent: ContentFile) -> tuple[DataFile, SpecScan]:
        try:
            spec = self._specs[sent.spec_id]
        except KeyError as error:
            raise self._contradiction(
                f"the file {sent.path} has spec {sent.spec_id}, which the table has not"
            ) from error
        if sent.key_metadata is not None:
            raise UnsupportedTableError(
                "encryption (a file is encrypted)", table=self._scan.table.name, path=sent.path
            )
        if self._is_remote and is_local(sent.path):
            raise self._contradiction(f"the file {sent.path} is on this machine, the table is not")
        try:
            return data_file(sent, spec.spec, spec.types), spec
        except Malformed as error:
            raise self._contradiction(f"the file {sent.path}: {error}") from error

    def _delete(self, sent: ContentFile) -> DataFile:
        """A delete file, the same object however many responses name it."""
        key = sent.path, sent.content_offset
        found = self._deletes.get(key)
        if found is None:
            found = self._deletes[key] = self._file(sent)[0]
            if found.content is FileContent.DATA:
                raise self._contradiction(f"the delete file {found.path} is one of data")
        return found

    def _check_vector(self, delete: DataFile, before: Sequence[DataFile], file: DataFile) -> None:
        """Check that a deletion vector names this file, and is the only one of the file."""
        if not delete.is_deletion_vector:
            return
        key_of = self._scan.table.storage.same_file_key
        named = delete.referenced_data_file
        if named != file.path and (named is None or key_of(named) != key_of(file.path)):
            raise self._contradiction(
                f"the file {file.path} refers to the deletion vector of {named} in {delete.path}"
            )
        if any(each.is_deletion_vector for each in before):
            raise self._contradiction(f"the file {file.path} has two deletion vectors")

    # ------------------------------------------------------------------ residuals

    def _check_residual(self, sent: bytes, own: Predicate, file: DataFile) -> None:
        """Check that the catalog's residual is implied by ``own``, which rows are filtered by.

        Raises UnsupportedTableError for a stricter one: it hides rows that the query wants, by a
        rule that icesql cannot apply.
        """
        if not sent:
            return
        key = sent, id(own)
        known = self._residuals.get(key)
        implied = known is not None and known[0]
        if known is None:
            try:
                residual = parse_predicate(load_json(sent), self._scan.schema)
                implied = self._implication.holds(self._known & own, residual)
            except (Malformed, RecursionError):
                implied = False
            self._residuals[key] = implied, own
        if not implied:
            raise UnsupportedTableError(
                "rows left out by a filter of the catalog's own (residual-filter in its plan)",
                table=self._scan.table.name,
                path=file.path,
            )

    def _contradiction(self, problem: str) -> CorruptFileError:
        return CorruptFileError(f"the catalog's plan for {self._scan.table.name}", problem)
