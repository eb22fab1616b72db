"""Creates tables, and replaces the definition and contents of tables that are there.

A new table is staged first, so that its data can be written before it becomes visible. A replaced
one keeps its name, uuid and history. Source: Java ``TableMetadata.buildReplacement``.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from types import MappingProxyType
from typing import Final

from msgspec.structs import replace

from icesql.catalog.table import Catalog, Table
from icesql.catalog.writes.change import TableChange
from icesql.commit.attempts import check_retries, commit, now_ms
from icesql.commit.conflicts import Since, is_readable, unchanged, validate
from icesql.commit.file_changes import CommitResult, FileChanges
from icesql.commit.snapshot_operation import SnapshotOperation
from icesql.commit.transaction import Part, commit_fixed
from icesql.context import QueryContext
from icesql.errors import CommitConflictError, ProgrammingError
from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.evolution.rules import check_schema
from icesql.iceberg.evolution.schema_changes import fresh_fields, with_fresh_ids
from icesql.iceberg.evolution.spec_changes import (
    PartitionRequest,
    SortRequest,
    new_sort_order,
    new_spec,
)
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.metadata.changes import updates as u
from icesql.iceberg.metadata.changes.apply import RESERVED_PROPERTIES, apply_updates, is_compatible
from icesql.iceberg.metadata.changes.updates import AssertCreate
from icesql.iceberg.metadata.table_metadata import (
    MAIN,
    NEWEST_FORMAT,
    SortOrder,
    TableMetadata,
    parse_metadata,
)
from icesql.iceberg.metadata.writing import metadata_bytes
from icesql.iceberg.partitioning import PartitionField, PartitionSpec
from icesql.iceberg.schema import Schema
from icesql.storage.open import Storage

_FORMAT: Final = "format-version"
_CODEC: Final = "write.parquet.compression-codec"


class StagedTable(Frozen):
    """A table that does not exist yet; ``table`` is its future state, for writing its files."""

    table: Table
    updates: tuple[u.Update, ...]


def stage_table(
    catalog: Catalog,
    identifier: Sequence[str],
    schema: Schema,
    partitioning: Sequence[PartitionRequest] = (),
    ordering: Sequence[SortRequest] = (),
    properties: Mapping[str, str] = MappingProxyType({}),
    *,
    location: str | None = None,
) -> StagedTable:
    """Prepare ``create_table``; nothing is written or visible to others before that.

    The ids of ``schema`` only distinguish its fields (and name identifier fields): the table gets
    fresh ones. The property ``format-version``, 1 to 3, is 2 by default. Raises CatalogError if the
    namespace is missing or the table exists; ProgrammingError, TypeMismatchError and
    ColumnNotFoundError for an invalid table definition.
    """
    version = new_version(properties, 2, 1, "1, 2 or 3")
    own = own_properties(properties)
    check_retries(own)
    fresh = with_fresh_ids(schema)
    made: tuple[u.Update, ...] = (
        u.AssignUuid(str(uuid.uuid4())),
        u.UpgradeFormatVersion(version),
        *definition(fresh, new_spec(fresh, partitioning), new_sort_order(fresh, ordering)),
        u.SetProperties({_CODEC: "zstd", **own}),
    )
    updates_sent = made if location is None else (*made, u.SetLocation(location))
    # Report an invalid definition before the catalog is called.
    apply_updates(None, (*made, u.SetLocation(location or "x")), now_ms=0)
    place = catalog.place_new(identifier, _change(updates_sent, Storage()))
    updates = (*made, u.SetLocation(place.location))
    return StagedTable(_staged(identifier, updates, place.storage), updates)


def definition(schema: Schema, spec: PartitionSpec, order: SortOrder) -> tuple[u.Update, ...]:
    """The updates that give a table its columns, partitioning and order."""
    return (
        u.AddSchema(schema),
        u.SetCurrentSchema(),
        u.AddPartitionSpec(spec),
        u.SetDefaultSpec(),
        u.AddSortOrder(order),
        u.SetDefaultSortOrder(),
    )


def own_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties besides the format version. ProgrammingError for one that cannot be set."""
    own = {key: text for key, text in properties.items() if key != _FORMAT}
    reserved = RESERVED_PROPERTIES.intersection(own)
    if reserved:
        raise ProgrammingError(f"property {min(reserved)} is not one that can be set")
    return own


def create_table(
    catalog: Catalog,
    staged: StagedTable,
    files: Sequence[DataFile] = (),
    *,
    rows: int | None = None,
    query: QueryContext | None = None,
) -> CommitResult:
    """Create a staged table, with its first snapshot if there are ``files``, in one step.

    ``rows`` is the number of rows in the files, if known. Raises CommitConflictError if a table of
    its name was created meanwhile; ``files`` are deleted then, as for any certain failure, and kept
    for CommitStateUnknownError.
    """
    table, context = staged.table, query or QueryContext()
    operation = None
    updates = staged.updates
    if files:
        changes = FileChanges("append", tuple(files), rows=rows)
        operation = SnapshotOperation(table, changes, context)
        try:
            updates = (*updates, *operation.updates(table, 1, now_ms()))
        except BaseException:
            operation.failed()
            raise
    part = Part(table, _change(updates, table.storage), operation, is_new=True)
    made = commit_fixed(catalog, [part], context)
    return CommitResult(made) if operation is None else operation.result(made)


def _change(updates: Sequence[u.Update], storage: Storage) -> TableChange:
    return TableChange(tuple(updates), (AssertCreate(),), storage, now_ms())


def _staged(identifier: Sequence[str], updates: Sequence[u.Update], storage: Storage) -> Table:
    document = apply_updates(None, updates, now_ms=now_ms())
    metadata = parse_metadata(metadata_bytes(document), ".".join(identifier))
    return Table(tuple(identifier), metadata, "", storage)


def new_version(properties: Mapping[str, str], usual: int, least: int, known: str) -> int:
    """The format version that properties give a table. Raises ProgrammingError."""
    text = properties.get(_FORMAT, str(usual))
    if text not in {str(each) for each in range(least, NEWEST_FORMAT + 1)}:
        raise ProgrammingError(f"{_FORMAT} is {text!r}; it can be {known}")
    return int(text)


# ------------------------------------------------------------------ replaced tables


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
