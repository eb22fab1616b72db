"""Describes a Parquet file of another writer as a data file of a table, and checks its columns.

Fields are found by id or name, metrics are those of the footer.

Source: Java ``TableMigrationUtil.getParquetMetrics`` and ``ParquetUtil.footerMetrics``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec import Struct
from msgspec.structs import replace
from pyarrow import types

from icesql.catalog.table import Table
from icesql.commit.snapshot_operation import SnapshotOperation
from icesql.errors import (
    CommitConflictError,
    CorruptFileError,
    DataError,
    IntegrityError,
    NotSupportedError,
    ProgrammingError,
    TypeMismatchError,
)
from icesql.iceberg import types as t
from icesql.iceberg.avro.schema import avro_name
from icesql.iceberg.evolution.schema_changes import is_widening, mapped_names
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.metadata.changes.updates import SetProperties, Update
from icesql.iceberg.metadata.name_mapping import PROPERTY, NameMapping, parse_name_mapping
from icesql.iceberg.schema import Schema
from icesql.maintain.import_folders import FoundFile
from icesql.read.columns.arrow_schema import FIELD_ID, arrow_type, one_value, stored
from icesql.read.columns.convert import leaf_reader
from icesql.read.columns.projection import ColumnReader, column_reader
from icesql.read.columns.variant import variant_reader
from icesql.read.formats.file_fields import FileField, arrow_fields, is_list, table_fields, walk
from icesql.read.formats.reader import decoding
from icesql.scan.tasks import ScanContext
from icesql.storage.open import Storage, is_local, local_spellings, split_path
from icesql.write.metrics import COUNTS, MetricsMode, file_metrics, metrics_modes

# ------------------------------------------------------------------ types of columns
# Check that the columns of a Parquet file have the types of a table, as every reader sees them.
#
# Only equal types and Iceberg's type promotions are accepted: readers differ on unsigned integers,
# on milliseconds and on bytes for a string column, and some would return other values. Source:
# Iceberg spec, "Parquet" (data types) and "Schema Evolution"; Java ``MessageTypeToType``, which
# maps Parquet types to Iceberg types.


# Parts of a logical type that decide the type.
_DETAILS: Final[Mapping[str, tuple[str, ...]]] = {
    "Int": ("bitWidth", "isSigned"),
    "Time": ("timeUnit",),
    "Timestamp": ("timeUnit", "isAdjustedToUTC"),
}
# Iceberg's types, and the physical and logical types of Parquet that store them. Readers of Iceberg
# would treat milliseconds as microseconds.
_TYPES: Final = """
boolean: BOOLEAN None
int: INT32 None, INT32 Int 8 True, INT32 Int 16 True, INT32 Int 32 True
int: INT64 Int 8 True, INT64 Int 16 True, INT64 Int 32 True
long: INT64 None, INT64 Int 64 True
float: FLOAT None
double: DOUBLE None
date: INT32 Date
time: INT64 Time microseconds
timestamp: INT64 Timestamp microseconds False
timestamptz: INT64 Timestamp microseconds True
timestamp_ns: INT64 Timestamp nanoseconds False
timestamptz_ns: INT64 Timestamp nanoseconds True
string: BYTE_ARRAY String, BYTE_ARRAY Enum, BYTE_ARRAY JSON
binary: BYTE_ARRAY None, BYTE_ARRAY BSON
uuid: FIXED_LEN_BYTE_ARRAY UUID
"""
_STORED: Final[Mapping[str, t.IcebergType]] = {
    stored: t.parse_primitive(type)
    for type, listed in (line.split(": ") for line in _TYPES.strip().splitlines())
    for stored in listed.split(", ")
}


def check_types(
    columns: Iterable[t.NestedField],
    fields: Sequence[FileField],
    parquet: Any,
    path: str,
    *,
    table: str,
) -> None:
    """Raise TypeMismatchError if a file's column does not fit the type of the table's column.

    ``fields`` are the file's fields with their ids in the table, ``parquet`` is its
    ``pyarrow.parquet.ParquetSchema``. Columns that the table does not have are ignored.
    Raises CorruptFileError if the two describe different columns.
    """
    leaves = tuple(parquet.column(index) for index in range(len(parquet)))
    if sum(not each.children for each in walk(fields)) != len(leaves):
        raise CorruptFileError(path, "its schema and its row groups have other columns")
    _Check(path, table, iter(leaves)).fields(columns, fields, "")


class _Check(Struct):
    """A walk over a file's fields; ``leaves`` are its Parquet columns, taken one by one."""

    path: str
    table: str
    leaves: Iterator[Any]

    def fields(
        self, columns: Iterable[t.NestedField], fields: Sequence[FileField], prefix: str
    ) -> None:
        own = {each.field_id: each for each in columns}
        for each in fields:
            column = None if each.field_id is None else own.get(each.field_id)
            if column is None:
                self._skip(each)
            else:
                self._field(column, each, f"{prefix}{column.name}")

    def _skip(self, field: FileField) -> None:
        for each in walk((field,)):
            if not each.children:
                next(self.leaves)

    def _field(self, column: t.NestedField, field: FileField, name: str) -> None:
        type = column.type
        match type:
            case t.StructType(inner) if pa.types.is_struct(field.type):
                self.fields(inner, field.children, f"{name}.")
            case t.ListType() if is_list(field.type):
                self._field(type.element_field, field.children[0], f"{name}.element")
            case t.MapType() if pa.types.is_map(field.type):
                key, value = field.children
                self._field(type.key_field, key, f"{name}.key")
                self._field(type.value_field, value, f"{name}.value")
            case t.VariantType() if variant_reader(field.type) is not None:
                self._skip(field)
            case _ if field.children or t.children(type):
                self._refuse(name, type, str(field.type))
            case _:
                leaf = next(self.leaves)
                stored = stored_type(leaf)
                taken = stored is not None and is_widening(stored, type)
                if not taken or leaf_reader(field.type, type) is None:
                    self._refuse(name, type, _spelled(leaf))

    def _refuse(self, name: str, type: t.IcebergType, found: str) -> None:
        raise TypeMismatchError(
            f'cannot add {self.path}: its column "{name}" is stored as {found}, and that of '
            f"{self.table} is {type}; files are taken as they lie where types are equal or widen: "
            "int to long, float to double, decimal to more digits of the same scale; "
            f"INSERT INTO {self.table} SELECT … FROM read_parquet('{self.path}') converts values"
        )


def stored_type(leaf: Any) -> t.IcebergType | None:
    """The Iceberg type of a ``pyarrow.parquet.ColumnSchema``; None if there is none."""
    physical, logical = leaf.physical_type, json.loads(leaf.logical_type.to_json())
    match physical, logical["Type"]:
        case "INT32" | "INT64" | "FIXED_LEN_BYTE_ARRAY", "Decimal":
            return t.DecimalType(logical["precision"], logical["scale"])
        case "INT96", _:
            return t.TIMESTAMPTZ  # older engines write INT96 for instants
        case "FIXED_LEN_BYTE_ARRAY", "None":
            return t.FixedType(leaf.length)
        case "BYTE_ARRAY", "Geometry":
            return t.GeometryType(*_given(logical, "crs"))
        case "BYTE_ARRAY", "Geography":
            return t.GeographyType(*_given(logical, "crs", "algorithm"))
        case _, kind:
            details = (logical[each] for each in _DETAILS.get(kind, ()))
            return _STORED.get(" ".join(map(str, (physical, kind, *details))))


def _given(logical: dict[str, Any], crs: str, algorithm: str | None = None) -> tuple[str, ...]:
    """The parameters of a geometry type, with defaults for missing ones."""
    found = (logical.get(crs) or t.GeometryType().crs,)
    return found if algorithm is None else (*found, logical.get(algorithm) or "spherical")


def _spelled(leaf: Any) -> str:
    """A Parquet type as messages show it, such as ``INT32 (Int, 8 bits, unsigned)``."""
    logical = json.loads(leaf.logical_type.to_json())
    kind = logical["Type"]
    details = []
    match kind:
        case "None":
            return f"{leaf.physical_type}({leaf.length})" if leaf.length else leaf.physical_type
        case "Int":
            sign = "signed" if logical["isSigned"] else "unsigned"
            details = [f"{logical['bitWidth']} bits", sign]
        case "Decimal":
            details = [f"precision {logical['precision']}", f"scale {logical['scale']}"]
        case "Timestamp" | "Time":
            details = [logical["timeUnit"], "UTC" if logical["isAdjustedToUTC"] else "without zone"]
        case "Geometry" | "Geography":
            details = [_given(logical, "crs")[0]]
    return f"{leaf.physical_type} ({', '.join([kind, *details])})"


# ------------------------------------------------------------------ data files


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
