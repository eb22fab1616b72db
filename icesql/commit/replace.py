"""Replaces a table's definition and contents; it keeps its name, uuid and history.

Source: Java ``TableMetadata.buildReplacement``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from types import MappingProxyType

from msgspec.structs import replace

from icesql.catalog.table import Catalog, Table
from icesql.commit.attempts import commit
from icesql.commit.change import CommitResult
from icesql.commit.create import definition, new_version, own_properties
from icesql.commit.files import FileChanges
from icesql.commit.snapshot_operation import SnapshotOperation
from icesql.commit.validation.checks import validate
from icesql.commit.validation.planned import is_readable
from icesql.commit.validation.since import Since
from icesql.commit.validation.validation import unchanged
from icesql.context import QueryContext
from icesql.errors import CommitConflictError, ProgrammingError
from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.evolution.fresh_ids import fresh_fields
from icesql.iceberg.evolution.schema_rules import check_schema
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.metadata.changes import updates as u
from icesql.iceberg.metadata.changes.apply import is_compatible
from icesql.iceberg.metadata.sort_order import SortOrder
from icesql.iceberg.metadata.table_metadata import MAIN, TableMetadata
from icesql.iceberg.new_spec import PartitionRequest, SortRequest, new_sort_order, new_spec
from icesql.iceberg.partitioning import PartitionField, PartitionSpec
from icesql.iceberg.schema import Schema


class Replacement(Frozen):
    """The next state of a table: ``table``, for writing its files; ``base`` is the current one."""

    base: Table
    table: Table
    schema: Schema
    spec: PartitionSpec
    order: SortOrder
    properties: Mapping[str, str]
    format_version: int


def stage_replacement(
    table: Table,
    schema: Schema,
    partitioning: Sequence[PartitionRequest] = (),
    ordering: Sequence[SortRequest] = (),
    properties: Mapping[str, str] = MappingProxyType({}),
) -> Replacement:
    """Prepare ``replace_table``; nothing is written before that.

    Columns of the same full name keep their ids, unless values in files cannot be read as the new
    type; all others get new ids. Partition fields of the same column and transform keep their ids,
    too; in format version 1 old fields keep their positions. ``properties`` are added to those of
    the table. Raises as ``stage_table`` does.
    """
    base = table.metadata
    oldest = base.format_version
    version = new_version(properties, oldest, oldest, f"{oldest} to 3 for this table")
    own = own_properties(properties)
    columns = _with_known_ids(schema, base)
    check_schema(columns, version)
    spec = _with_known_fields(new_spec(columns, partitioning), base, columns, version)
    order = new_sort_order(columns, ordering)
    columns = replace(columns, schema_id=_schema_id(base, columns))
    spec_id = _spec_id(base, spec)
    spec = base.specs.get(spec_id) or replace(spec, spec_id=spec_id)
    merged = {**base.properties, **own}
    made = _replaced(base, columns, spec, merged, version)
    return Replacement(table, replace(table, metadata=made), columns, spec, order, own, version)


def replace_table(
    catalog: Catalog,
    staged: Replacement,
    files: Sequence[DataFile] = (),
    *,
    reads_itself: bool = False,
    rows: int | None = None,
    query: QueryContext | None = None,
) -> CommitResult:
    """Replace a table by the staged state, with a snapshot if there are ``files``, in one step.

    Earlier snapshots stay for time travel, and other branches unchanged. Rows that other writers
    commit meanwhile become part of that history; but if the new rows were computed from the old
    ones (``reads_itself``), they raise CommitConflictError, as do concurrently added columns or
    partition fields. ``rows`` is the number of rows in the files, if known. Raises as
    ``commit_append`` does.
    """
    context = query or QueryContext()
    operation = _Replace(staged, files, rows, context, reads_itself=reads_itself)
    return operation.result(commit(catalog, staged.base, operation, context))


class _Replace(SnapshotOperation):
    """The operation of ``replace_table``, with a snapshot if there are files."""

    def __init__(
        self,
        staged: Replacement,
        files: Sequence[DataFile],
        rows: int | None,
        query: QueryContext,
        *,
        reads_itself: bool,
    ) -> None:
        super().__init__(staged.table, FileChanges("append", (*files,), rows=rows), query)
        self._replacement, self._reads_itself = staged, reads_itself

    @property
    def _is_nothing(self) -> bool:
        return self._changes.has_no_files

    def updates(self, base: Table, attempt: int, now_ms: int) -> Sequence[u.Update]:
        staged, metadata = self._replacement, base.metadata
        start = staged.base.metadata
        if (metadata.last_column_id, metadata.last_partition_id) != (
            start.last_column_id,
            start.last_partition_id,
        ):
            raise CommitConflictError(
                f"columns or partition fields were added to {base.name} meanwhile; run the "
                "statement again"
            )
        if self._reads_itself:
            relied_on = unchanged(start.current_snapshot_id, ALWAYS_TRUE)
            head = metadata.current_snapshot
            validate(relied_on, Since(relied_on.start_id, base, head, self._query))
        found: list[u.Update] = []
        if staged.format_version > metadata.format_version:
            found.append(u.UpgradeFormatVersion(staged.format_version))
        found += definition(staged.schema, staged.spec, staged.order)
        if staged.properties:
            found.append(u.SetProperties(staged.properties))
        if MAIN in metadata.refs:
            found.append(u.RemoveSnapshotRef(MAIN))
        if not self._is_nothing:
            if _spec_id(metadata, staged.spec) != staged.spec.spec_id:
                # The files record the id of the spec by which they are partitioned.
                raise CommitConflictError(
                    f"another partitioning was given to {base.name} meanwhile; run the statement "
                    "again"
                )
            version = max(staged.format_version, metadata.format_version)
            columns = replace(staged.schema, schema_id=_schema_id(metadata, staged.schema))
            merged = {**metadata.properties, **staged.properties}
            made = _replaced(metadata, columns, staged.spec, merged, version)
            found += super().updates(replace(base, metadata=made), attempt, now_ms)
        return found


def _replaced(
    base: TableMetadata,
    schema: Schema,
    spec: PartitionSpec,
    properties: Mapping[str, str],
    version: int,
) -> TableMetadata:
    """The metadata from which the new snapshot is made: that of ``base`` with an empty main."""
    refs = {name: ref for name, ref in base.refs.items() if name != MAIN}
    return replace(
        base,
        format_version=version,
        schemas={**base.schemas, schema.schema_id: schema},
        current_schema_id=schema.schema_id,
        specs={**base.specs, spec.spec_id: spec},
        default_spec_id=spec.spec_id,
        properties=properties,
        refs=refs,
        current_snapshot_id=None,
        next_row_id=(base.next_row_id or 0) if version > 2 else None,
    )


def _with_known_ids(schema: Schema, base: TableMetadata) -> Schema:
    """The schema, with the ids of the current schema for fields of the same full names."""
    numbers = count(1)
    given: dict[int, int] = {}

    def own_id(old: int) -> int:
        number = -next(numbers)
        given[old] = number
        return number

    # First give each field a unique id, so that each id has one full name.
    apart = Schema(fresh_fields(schema.fields, own_id))
    old = base.schema
    known = {name: field_id for field_id, name in old.name_by_id.items()}
    last = count(base.last_column_id + 1)
    ids: dict[int, int] = {}
    for field_id, name in apart.name_by_id.items():  # parents before their children
        parent = apart.parent_by_id.get(field_id)
        own = known.get(name)
        keeps = (
            own is not None
            and old.parent_by_id.get(own) == (None if parent is None else ids[parent])
            and _is_readable(old.type_of(own), apart.type_of(field_id))
        )
        ids[field_id] = own if keeps and own is not None else next(last)
    fields = fresh_fields(apart.fields, ids.__getitem__)
    identifiers = tuple(ids[given[each]] for each in schema.identifier_field_ids)
    return Schema(fields, 0, identifiers)


def _is_readable(old: t.IcebergType, new: t.IcebergType) -> bool:
    """True if values of type ``old`` in files can be read as ``new`` under the same id.

    Structs are always compatible: a field that cannot keep its id gets a new one, and is NULL in
    old files. Elements of a list or map cannot be missing, so their types have to be readable.
    """
    if not is_readable(old, new) or isinstance(old, t.StructType):
        return is_readable(old, new)
    inner = zip(t.children(old), t.children(new), strict=True)
    return all(_is_readable(one.type, other.type) for one, other in inner)


def _with_known_fields(
    spec: PartitionSpec, base: TableMetadata, columns: Schema, version: int
) -> PartitionSpec:
    known = {
        (field.source_ids, field.transform.lower()): field.field_id
        for spec_id in sorted(base.specs)
        for field in base.specs[spec_id].fields
    }
    last = count(base.last_partition_id + 1)
    if version < 2:
        return replace(spec, fields=_in_old_places(spec, base.spec, columns, last))
    made: list[PartitionField] = []
    for field in spec.fields:
        old = known.get((field.source_ids, field.transform.lower()))
        made.append(replace(field, field_id=next(last) if old is None else old))
    return replace(spec, fields=tuple(made))


def _in_old_places(
    spec: PartitionSpec, old: PartitionSpec, columns: Schema, last: Iterator[int]
) -> tuple[PartitionField, ...]:
    """The fields of a spec for format version 1: old fields keep their positions, or become void.

    In format version 1 partition values are identified by position, and field ids follow from it.
    """
    new = {(each.source_ids, each.transform.lower()): each for each in spec.fields}
    names = {each.name for each in spec.fields}
    made: list[PartitionField] = []
    for field in old.fields:
        kept = new.pop((field.source_ids, field.transform.lower()), None)
        if kept is not None:
            made.append(replace(kept, field_id=field.field_id))
            continue
        if any(each not in columns.field_by_id for each in field.source_ids):
            raise ProgrammingError(
                f'the partition field "{field.name}" stays in a table of format version 1, and the '
                f"column that it is of does not; give it format-version 2 in the same statement"
            )
        name = f"{field.name}_{field.field_id}" if field.name in names else field.name
        made.append(replace(field, name=name, transform="void"))
    made += [replace(each, field_id=next(last)) for each in new.values()]
    return tuple(made)


def _schema_id(base: TableMetadata, schema: Schema) -> int:
    for schema_id, known in base.schemas.items():
        same_keys = set(known.identifier_field_ids) == set(schema.identifier_field_ids)
        if known.fields == schema.fields and same_keys:
            return schema_id
    return max(base.schemas) + 1


def _spec_id(base: TableMetadata, spec: PartitionSpec) -> int:
    for spec_id, known in base.specs.items():
        if is_compatible(known, spec):
            return spec_id
    return max(base.specs) + 1
