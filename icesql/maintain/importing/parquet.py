"""Describe a Parquet file as a data file of a table: fields by id or name, metrics by the footer.

Source: Java ``TableMigrationUtil.getParquetMetrics`` and ``ParquetUtil.footerMetrics``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec.structs import replace
from pyarrow import types

from icesql.catalog.table import Table
from icesql.commit.snapshot_operation import SnapshotOperation
from icesql.errors import (
    CommitConflictError,
    DataError,
    IntegrityError,
    NotSupportedError,
    ProgrammingError,
)
from icesql.iceberg import types as t
from icesql.iceberg.avro_name import avro_name
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.metadata.changes.columns import mapped_names
from icesql.iceberg.metadata.changes.updates import SetProperties, Update
from icesql.iceberg.metadata.name_mapping import PROPERTY, NameMapping, parse_name_mapping
from icesql.iceberg.schema import Schema
from icesql.maintain.importing.column_types import check_types
from icesql.maintain.importing.folders import FoundFile
from icesql.read.columns.arrow_schema import FIELD_ID, arrow_type, stored
from icesql.read.columns.projection import ColumnReader, column_reader
from icesql.read.columns.values import one_value
from icesql.read.formats.decode_errors import decoding
from icesql.read.formats.file_fields import FileField, arrow_fields, table_fields, walk
from icesql.scan.tasks.task import ScanContext
from icesql.storage.open import Storage, is_local, local_spellings, split_path
from icesql.write.file_metrics import file_metrics
from icesql.write.metrics_config import COUNTS, MetricsMode, metrics_modes

UNMAPPED: Final = -1


def name_mapping_json(schema: Schema) -> str:
    """The initial name mapping of a table: each field by its current name."""
    return json.dumps(mapped_names((), schema.fields))


def mapping_of(table: Table) -> NameMapping:
    """The name mapping of the table, or the one that it gets if it has none."""
    own = table.metadata.name_mapping
    return parse_name_mapping(name_mapping_json(table.metadata.schema)) if own is None else own


def data_file(table: Table, storage: Storage, found: FoundFile, mapping: NameMapping) -> DataFile:
    """The file as a data file with the table's current spec.

    Raises ProgrammingError for a file of another format, CorruptFileError for a Parquet file that
    cannot be read, TypeMismatchError for columns of other types, NotSupportedError for field ids of
    another table, DataError if a partition column contradicts its folder, IntegrityError if a
    required column is missing or has NULL.
    """
    metadata = table.metadata
    schema, spec = metadata.schema, metadata.spec
    context = ScanContext(
        table.name, schema, schema, schema, metadata.specs, storage, metadata.format_version,
        mapping,
    )  # fmt: skip
    with storage.open(found.path, found.size) as stream, decoding(found.path):
        if not found.path.lower().endswith((".parquet", ".parq")):
            if stream.read(4) not in (b"PAR1", b"PARE"):
                raise ProgrammingError(
                    f"{found.path} is no Parquet file, and add_files adds all files of a folder; "
                    "move it away, give it a name that begins with _, or add files one by one"
                )
            stream.seek(0)
        file = pq.ParquetFile(stream)
        footer, arrow = file.metadata, file.schema_arrow
    own = arrow_fields(arrow, FIELD_ID)
    if any(each.field_id is not None for each in walk(own)):
        _check_level(own, None, found.path, schema)
    fields, missing_is_null = table_fields(own, found.path, context)
    _check_names(fields, found.path, schema)
    constants = {
        each.source_ids[0]: value
        for each, value in zip(spec.fields, found.partition, strict=True)
        if str(each.transform) == "identity"
    }
    check_types(schema.fields, fields, footer.schema, found.path, table=table.name)
    readers = [
        column_reader(column, fields, constants, found.path, missing_is_null=missing_is_null)
        for column in schema.fields
    ]
    _check_stored(constants, readers, schema, storage, found)
    leaves = [each for each in walk(fields) if not each.children]
    ids = [UNMAPPED if each.field_id is None else each.field_id for each in leaves]
    modes = _modes(table, leaves)
    metrics = file_metrics(footer, ids, schema, modes, [{}] * footer.num_row_groups)
    _check_required(schema, ids, constants, footer, found.path)
    return DataFile(
        FileContent.DATA,
        found.path,
        "PARQUET",
        spec.spec_id,
        found.partition,
        footer.num_rows,
        found.size,
        column_sizes=metrics.column_sizes,
        value_counts=metrics.value_counts,
        null_value_counts=metrics.null_value_counts,
        lower_bounds=metrics.lower_bounds,
        upper_bounds=metrics.upper_bounds,
        split_offsets=metrics.split_offsets or None,
        sort_order_id=0,
    )


def _check_stored(
    constants: Mapping[int, Any],
    readers: Sequence[ColumnReader],
    schema: Schema,
    storage: Storage,
    found: FoundFile,
) -> None:
    """Refuse a column that contradicts its folder: readers differ in which one they use."""
    for field_id, value in constants.items():
        path = [*reversed(schema.ancestors(field_id)), schema.field_by_id[field_id]]
        reader = next(each for each in readers if each.column.field_id == path[0].field_id)
        if reader.source is None:
            continue
        (wanted,) = stored(one_value(value, path[-1].type))
        with storage.open(found.path, found.size) as stream, decoding(found.path):
            for batch in pq.ParquetFile(stream).iter_batches(columns=[reader.source.name]):
                values = reader(batch.column(0), batch.num_rows)
                for parent, child in pairwise(path):
                    values = pc.struct_field(values, [t.children(parent.type).index(child)])
                values = stored(values)
                same = pc.is_null(values) if value is None else pc.equal(values, wanted)
                if not pc.all(same.fill_null(False)).as_py():
                    raise DataError(
                        f'cannot add {found.path}: its column "{schema.name_by_id[field_id]}" '
                        "holds other values than its folder names; INSERT INTO … SELECT FROM "
                        "read_parquet(…) writes its rows anew"
                    )


def _check_names(fields: Sequence[FileField], path: str, schema: Schema) -> None:
    """Refuse a column that is unread only for the case of its name or an old name mapping."""
    read = {each.field_id for each in fields}
    left = {each.name.lower(): each.name for each in schema.fields if each.field_id not in read}
    for each in fields:
        if each.field_id is None and each.name.lower() in left:
            raise NotSupportedError(
                f'not supported: adding {path}, whose column "{each.name}" would not be read as '
                f'"{left[each.name.lower()]}": files without field ids are read by the very names '
                "that the table's property schema.name-mapping.default has; INSERT INTO … SELECT "
                "FROM read_parquet(…) writes its rows anew"
            )


def _check_level(
    fields: Sequence[FileField], parent: t.NestedField | None, path: str, schema: Schema
) -> None:
    """Refuse field ids that belong to other columns in this table, or that some columns lack.

    ``fields`` are the children of the file's field for ``parent``, None at the top.
    """
    collection = parent is not None and isinstance(parent.type, t.ListType | t.MapType)
    for each in fields:
        if each.field_id is None:
            raise NotSupportedError(
                f'not supported: adding {path}, whose column "{each.name}" has no field id while '
                "others have: it would be left out, since ids alone are read where there are any; "
                "INSERT INTO … SELECT FROM read_parquet(…) writes its rows anew"
            )
        known = schema.field_by_id.get(each.field_id)
        # Writers name elements, keys and values differently.
        named = known is not None and (
            collection or each.name in (known.name, avro_name(known.name))
        )
        above = None if parent is None else parent.field_id
        if known is None or not named or schema.parent_by_id.get(each.field_id) != above:
            means = "none" if known is None else f'"{schema.name_by_id[each.field_id]}"'
            raise NotSupportedError(
                f'not supported: adding {path}, whose column "{each.name}" has field id '
                f"{each.field_id}, which is {means} in this table: it was written for another one; "
                "INSERT INTO … SELECT FROM read_parquet(…) writes its rows anew"
            )
        if not isinstance(known.type, t.VariantType):
            _check_level(each.children, known, path, schema)


def _modes(table: Table, leaves: Sequence[FileField]) -> dict[int, MetricsMode]:
    """The metrics modes; bounds only for columns stored exactly as in this table's own files."""
    schema = table.metadata.schema
    modes = metrics_modes(schema, table.metadata.properties)
    for each in leaves:
        if each.field_id is None or each.field_id not in modes:
            continue
        wanted = arrow_type(schema.type_of(each.field_id))
        if not _same_bytes(each.type, wanted) and modes[each.field_id].has_bounds:
            modes[each.field_id] = COUNTS
    return modes


def _same_bytes(given: pa.DataType, wanted: pa.DataType) -> bool:
    """True if statistics of one type are in the units of the other."""
    for kinds, unit in _UNITS:
        if all(any(is_kind(each) for is_kind in kinds) for each in (given, wanted)):
            return not unit or bool(getattr(given, unit) == getattr(wanted, unit))
    return bool(given == wanted)


# Kinds of types, and the attribute that has the unit of their values.
_UNITS: Final = (
    ((types.is_timestamp,), "unit"),
    ((types.is_decimal,), "scale"),
    ((types.is_signed_integer,), ""),
    ((types.is_floating,), ""),
    ((types.is_string, types.is_large_string, types.is_string_view), ""),
    ((types.is_binary, types.is_large_binary, types.is_binary_view), ""),
)


def _check_required(
    schema: Schema, ids: Sequence[int], constants: dict[int, Any], footer: Any, path: str
) -> None:
    """Raise IntegrityError if a required top-level column is missing or may have NULL."""
    for column in schema.fields:
        if not column.required or t.children(column.type):
            continue
        if column.field_id in constants:
            if constants[column.field_id] is None:
                raise IntegrityError(f'{path}: column "{column.name}" is required, and NULL here')
            continue
        if column.field_id not in ids:
            raise IntegrityError(f'{path} has no column "{column.name}", which is required')
        place = ids.index(column.field_id)
        for number in range(footer.num_row_groups):
            statistics = footer.row_group(number).column(place).statistics
            nullable = footer.schema.column(place).max_definition_level > 0
            unknown = statistics is None or not statistics.has_null_count
            if nullable and (unknown or statistics.null_count):
                found = "may have NULL: its footer does not say" if unknown else "has NULL"
                raise IntegrityError(f'{path}: column "{column.name}" is required, and {found}')


class AddFiles(SnapshotOperation):
    """Appends the files; sets the name mapping by which they are read if the table has none."""

    def updates(self, base: Table, attempt: int, now_ms: int) -> Sequence[Update]:
        """See ``SnapshotOperation``. Raises CommitConflictError if the mapping changed."""
        added = super().updates(base, attempt, now_ms)
        found = self.found
        mapping = base.metadata.name_mapping
        if mapping is None and found.metadata.name_mapping is None:
            text = name_mapping_json(found.metadata.schema)
            return SetProperties({PROPERTY: text}), *added
        if mapping is None or not mapping.holds(mapping_of(found)):
            raise CommitConflictError(
                f"the property {PROPERTY} of {base.name}, which says what columns the files have, "
                "was changed meanwhile; nothing was added, run the statement again"
            )
        return added


def spelled(file: DataFile, location: str) -> DataFile:
    """The file with its local path as the table spells its location: ``file:/a`` or ``/a``.

    Readers whose default file system is not local understand it.
    """
    if not is_local(file.path):
        return file
    place = local_spellings(file.path)[0]
    is_uri = split_path(location)[0] == "file"
    return replace(file, path=f"file:{place}" if is_uri else place)
