"""A manifest walker compiled from the writer schema: one pass over the bytes fills the columns.

The walk is Python source made for one schema, because a generic reader spends its time checking the
type of every value. Small fields are decoded at once, the maps are stepped over and only their
offsets are kept (``EncodedMaps``). It reads every schema that resolves under Avro's rules, whatever
unions it has; maps and arrays of an unusual shape are decoded at once. The readers find
out by which schema the values were written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from typing import Any, Final

from msgspec.structs import replace

from icesql.errors import CorruptFileError
from icesql.iceberg.avro.container import AvroFile
from icesql.iceberg.avro.schema import AvroNode, OddSchema, parse_avro_schema
from icesql.iceberg.avro.values import BadAvro
from icesql.iceberg.manifest import schema as known
from icesql.iceberg.manifest.entries import (
    EncodedArrays,
    EncodedMaps,
    Kind,
    ManifestColumns,
    PlainMaps,
)
from icesql.iceberg.manifest.partition_values import UNSTORED, PartitionForm, partition_converter
from icesql.iceberg.manifest.walk_source import WalkLines
from icesql.iceberg.metadata.json_fields import Malformed, load_json
from icesql.iceberg.types import FixedType, IcebergType, UUIDType

Walk = Callable[[bytes, Sequence[tuple[int, int, int]], ManifestColumns, "_Offsets", str], None]

_RARE_TYPES: Final = {"key_metadata": bytes, "referenced_data_file": str}


class _Offsets:
    """The offsets of maps and arrays, and the maps that must be read item by item."""

    def __init__(self, names: Iterable[str]) -> None:
        # Of maps that are not left encoded, the maps.
        self.starts: dict[str, list[Any]] = {name: [] for name in names}
        self.irregular: dict[str, set[int]] = {name: set() for name in self.starts}
        self.arrays: dict[str, dict[int, int]] = {}


def read_manifest(file: AvroFile, form: PartitionForm) -> ManifestColumns:
    """The columns of a manifest. Raises CorruptFileError."""
    try:
        walk, maps = _compiled(file.schema, form)
    except (Malformed, OddSchema) as error:
        raise CorruptFileError(file.path, f"not a manifest: {error}") from error
    offsets = _Offsets(maps)
    columns = ManifestColumns([], [], [], [], [], [], [], [], [], [])
    walk(file.data, file.blocks, columns, offsets, file.path)
    for name, is_plain in maps.items():
        kind: Kind = "bytes" if name in known.BOUND_MAPS.values() else "long"
        starts = offsets.starts[name]
        columns.maps[name] = (
            EncodedMaps(file.data, starts, offsets.irregular[name], kind, file.path)
            if is_plain
            else PlainMaps(starts)
        )
    for name, arrays in offsets.arrays.items():
        columns.rare[name] = EncodedArrays(file.data, arrays, file.path)
    count = len(columns.status)
    for column in (columns.snapshot_id, columns.sequence_number, columns.file_sequence_number):
        column.extend([None] * (count - len(column)))
    columns.content.extend([0] * (count - len(columns.content)))
    columns.record_count.extend([-1] * (count - len(columns.record_count)))
    unstored = (UNSTORED,) * len(form.types)
    columns.partition.extend([unstored] * (count - len(columns.partition)))
    return columns


@lru_cache(maxsize=64)
def _compiled(schema: bytes, form: PartitionForm) -> tuple[Walk, dict[str, bool]]:
    generator = _WalkGenerator(form)
    generator.entry(parse_avro_schema(schema))
    return generator.compile(), generator.maps


def read_partitions(
    file: AvroFile, encoded: Sequence[bytes], form: PartitionForm
) -> list[tuple[Any, ...]]:
    """The partitions in the encoded partition records of a manifest, each kind decoded once.

    Raises as ``read_manifest`` does.
    """
    walk = _partition_walk(file.schema, form)
    kinds = list(dict.fromkeys(encoded))
    data = b"".join(kinds)
    columns = ManifestColumns([], [], [], [], [], [], [], [], [], [])
    walk(data, ((len(kinds), len(data), 0),), columns, _Offsets(()), file.path)
    known_ones = dict(zip(kinds, columns.partition, strict=True))
    return [known_ones[each] for each in encoded]


@lru_cache(maxsize=64)
def _partition_walk(schema: bytes, form: PartitionForm) -> Walk:
    data_file = known.entry_fields(parse_avro_schema(schema))[known.DATA_FILE]
    generator = _WalkGenerator(form)
    generator.optional_partition(known.file_fields(data_file.node)[known.PARTITION].node)
    return generator.compile()


class _WalkGenerator(WalkLines):
    """The lines of a walk over manifest entries; ``maps`` says which maps are left encoded."""

    def __init__(self, form: PartitionForm) -> None:
        super().__init__()
        self.form = form
        self.maps: dict[str, bool] = {}

    # ------------------------------------------------------------------ records

    def entry(self, root: AvroNode) -> None:
        ids = {id(each): field_id for field_id, each in known.entry_fields(root).items()}
        for each in known.fields_of(root):
            match ids.get(id(each)):
                case known.STATUS:
                    self.column("status", each.node, int)
                case known.SNAPSHOT_ID:
                    self.repeating("snapshot_id", each.node, int, "v = None")
                case known.SEQUENCE_NUMBER:
                    self.repeating("sequence_number", each.node, int, "v = None")
                case known.FILE_SEQUENCE_NUMBER:
                    self.repeating("file_sequence_number", each.node, int, "v = None")
                case known.DATA_FILE:
                    self.record(each.node, self.data_file, _refuse_null("data_file"))
                case _:
                    self.skip(each.node)

    def data_file(self, record: AvroNode) -> None:
        ids = {id(each): field_id for field_id, each in known.file_fields(record).items()}
        for each in record.fields:
            match ids.get(id(each)):
                case known.CONTENT:
                    self.column("content", each.node, int, "v = 0")
                case known.FILE_PATH:
                    self.column("path", each.node, str)
                case known.FILE_FORMAT:
                    self.repeating("file_format", each.node, str)
                case known.PARTITION:
                    self.optional_partition(each.node)
                case known.RECORD_COUNT:
                    self.column("record_count", each.node, int, "v = -1")
                case known.FILE_SIZE:
                    self.column("file_size_in_bytes", each.node, int)
                case int() as field_id if field_id in known.MAPS:
                    self.map_column(known.MAPS[field_id], each.node, field_id in known.BOUND_MAPS)
                case int() as field_id if field_id in known.RARE:
                    self.rare(known.RARE[field_id], each.node)
                case _:
                    self.skip(each.node)

    def record(self, node: AvroNode, read: Callable[[AvroNode], None], null: str) -> None:
        known.fields_of(node)  # exactly one branch is a record
        self.branches(
            node, lambda each: read(each) if each.kind == "record" else self.wrong(each, dict), null
        )

    def optional_partition(self, node: AvroNode) -> None:
        append = self.appender("partition")
        none = self.constant((UNSTORED,) * len(self.form.types))
        self.record(node, self.partition, f"v = {none}")
        self.add(f"{append}(v)")

    def partition(self, record: AvroNode) -> None:
        stored = known.partition_fields(record, self.form.fields, len(self.form.types))
        variable: dict[int, str] = {}
        type_of = {id(each): type_ for each, type_ in zip(stored, self.form.types, strict=True)}
        for position, each in enumerate(record.fields):
            if id(each) not in type_of:
                self.skip(each.node)
                continue
            name = variable[id(each)] = f"x{position}"
            read = partial(self.partition_value, name, type_of[id(each)])
            self.branches(each.node, read, f"{name} = None")
        unstored = self.constant(UNSTORED)
        values = "".join(f"{variable.get(id(each), unstored)}, " for each in stored)
        self.add(f"v = ({values})")

    def partition_value(self, name: str, type_: IcebergType, node: AvroNode) -> None:
        self.value(name, node)
        convert = partition_converter(node, type_)
        if convert is not None:
            self.add(f"{name} = {self.constant(convert)}({name})")

    # ------------------------------------------------------------------ columns

    def appender(self, column: str) -> str:
        self.head.append(f"{column}_append = columns.{column}.append")
        return f"{column}_append"

    def column(self, column: str, node: AvroNode, kind: type, null: str = "") -> None:
        append = self.appender(column)
        self.read(column, node, kind, null)
        self.add(f"{append}(v)")

    def read(self, column: str, node: AvroNode, kind: type, null: str) -> None:
        self.branches(node, lambda each: self.typed(each, kind), null or _refuse_null(column))

    def repeating(self, column: str, node: AvroNode, kind: type, null: str = "") -> None:
        """Read a value into ``v`` unless its bytes are those of the entry before."""
        # No bytes start with an empty tuple of prefixes.
        self.head.append(f"{column}_bytes, {column}_value, {column}_size = (), None, 0")
        append = self.appender(column)
        self.add(f"if data.startswith({column}_bytes, p):", f" p += {column}_size", "else:")
        self.indent += 1
        self.add("start = p")
        self.read(column, node, kind, null)
        self.add(
            f"{column}_bytes = data[start:p]",
            f"{column}_size = p - start",
            f"{column}_value = v",
        )
        self.indent -= 1
        self.add(f"{append}({column}_value)")

    def map_column(self, name: str, node: AvroNode, is_bytes: bool) -> None:
        kind = "bytes" if is_bytes else "long"
        is_plain = self.maps[name] = known.is_plain_map(node, is_bytes)
        key, item = known.pair_fields(node)
        if key.key == item.key and not is_plain:
            raise OddSchema("a map from field ids whose key and value have one id")
        pairs = partial(_pairs, key.key, item.key, bytes if is_bytes else int)
        self.head.append(f"{name}_append = offsets.starts[{name!r}].append")
        self.head.append(f"{name}_irregular = offsets.irregular[{name!r}].add")

        def value(branch: AvroNode) -> None:
            if is_plain:
                self.add(f"{name}_append(p)")
                self.jump(
                    f"{kind}_map_skips",
                    [f"{name}_irregular(i)", f"p = end_of_map(data, p, {kind!r})"],
                )
            elif branch.kind == "array":
                self.converted(branch, pairs)
                self.add(f"{name}_append(v)")
            else:
                self.wrong(branch, list)

        self.branches(node, value, f"{name}_append({-1 if is_plain else None})")

    def rare(self, name: str, node: AvroNode) -> None:
        is_array = name in ("split_offsets", "equality_ids")
        is_encoded = is_array and all(_holds_integers(each) for each in node.branches)
        place = "offsets.arrays" if is_encoded else "columns.rare"
        self.head.append(f"{name} = {place}[{name!r}] = {{}}")

        def value(branch: AvroNode) -> None:
            if is_encoded:
                self.add(f"{name}[i] = p")
                self.jump("long_array_skips", ["p = read_long_array(data, p)[1]"])
                return
            if not is_array:
                self.typed(branch, _RARE_TYPES.get(name, int))
            elif branch.kind == "array":
                self.converted(branch, lambda items: tuple(_typed(each, int) for each in items))
            else:
                self.wrong(branch, list)
            self.add(f"{name}[i] = v")

        self.branches(node, value, "pass")


def _refuse_null(column: str) -> str:
    return f"raise BadAvro('{column} is null')"


def _holds_integers(node: AvroNode) -> bool:
    return node.kind == "array" and node.items[0].kind in known.INTEGERS


def _typed(value: Any, kind: type) -> Any:
    """``value`` as one of ``kind``; Avro allows strings and bytes for each other."""
    if kind is bytes and isinstance(value, str):
        return value.encode()
    if not isinstance(value, kind) or isinstance(value, bool):
        raise BadAvro(f"a {type(value).__name__} where a {kind.__name__} belongs")
    return value


def _pairs(key: str | int, value: str | int, kind: type, pairs: list[Any]) -> dict[int, Any]:
    """A map without the pairs that are null, or have a null in them."""
    listed = [_typed(each, dict) for each in pairs if each is not None]
    return {
        _typed(each[key], int): _typed(each[value], kind)
        for each in listed
        if None not in each.values()
    }


# ------------------------------------------------------------------ readers by writer schema
# Iceberg's Java library (seen in 1.12) writes and reads partition values of type fixed with a
# length, as Avro bytes, although the schema in the file says fixed: ``ValueWriters.fixedBuffers``.
# Such a file does not match its own Avro schema, and may still parse by it, with wrong entries. So
# both readings are tried, and one has to fit all entries and counts: see ``as_written``.


# By status (existing, added, deleted): the files and rows that a manifest list counts, if it does.
Counts = Sequence[tuple[int | None, int | None]]
Facts = tuple[list[str], list[tuple[Any, ...]], list[tuple[int, int, int]]]


def as_written(file: AvroFile, form: PartitionForm, counts: Counts) -> AvroFile:
    """The file with the schema that its bytes were written by: with or without lengths.

    By it every entry is valid and the ``counts`` of the manifest list match. Raises
    CorruptFileError if neither schema fits, or both do and give different entries.
    """
    other = _with_lengths(file)
    if other is None:
        return file
    plain = _fitting(file, form, counts)
    lengthy = _fitting(other, form, counts)
    if plain is None and lengthy is None:
        raise CorruptFileError(
            file.path,
            "its entries are none that the manifest list counts, whether its partition values of "
            "type fixed have lengths, as Java writes them, or none",
        )
    if plain is not None and lengthy is not None and plain != lengthy:
        raise CorruptFileError(
            file.path,
            "its entries are ambiguous: its partition values of type fixed may have lengths, as "
            "Java writes them, or none",
        )
    return file if lengthy is None else other


def _fitting(file: AvroFile, form: PartitionForm, counts: Counts) -> Facts | None:
    """Decode the entries by this schema; None if they do not fit it, or not the listed counts."""
    try:
        found = read_manifest(file, form)
    except CorruptFileError:
        return None
    rows = [*zip(found.status, found.record_count, found.file_size_in_bytes, strict=True)]
    if any(status not in (0, 1, 2) or count < 0 or size <= 0 for status, count, size in rows):
        return None
    if "" in found.path or not {0, 1, 2}.issuperset(found.content):
        return None
    for values in found.partition:
        for value, type in zip(values, form.types, strict=True):
            if isinstance(value, bytes) and len(value) != _length(type, value):
                return None
    for status, (files, records) in enumerate(counts):
        own = [count for each, count, _ in rows if each == status]
        if files not in (None, len(own)) or records not in (None, sum(own)):
            return None
    return found.path, found.partition, rows


def _length(type: IcebergType, value: bytes) -> int:
    """How long a value of the type is."""
    match type:
        case FixedType(length):
            return length
        case UUIDType():
            return 16
        case _:
            return len(value)


def _with_lengths(file: AvroFile) -> AvroFile | None:
    """The same file with its plain fixed types declared as bytes; None if it has none.

    Decimals and uuids stay: their fixed form is as the schema says.
    """
    names: set[str] = set()
    if b'"fixed"' not in file.schema:
        return None
    try:
        schema = _as_bytes(load_json(file.schema), names)
    except Malformed:
        return None
    if not names:
        return None
    return replace(file, metadata={**file.metadata, "avro.schema": json.dumps(schema).encode()})


_TYPES: Final = frozenset({"type", "fields", "items", "values"})


def _as_bytes(node: Any, names: set[str]) -> Any:
    match node:
        case {"type": "fixed", "name": str(name)} if "logicalType" not in node:
            names.add(name)
            return "bytes"
        case dict():
            return {
                key: _as_bytes(each, names) if key in _TYPES else each for key, each in node.items()
            }
        case list():
            return [_as_bytes(each, names) for each in node]
        case str() if node in names:
            return "bytes"
        case _:
            return node
