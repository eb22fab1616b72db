"""A manifest walker compiled from the writer schema: one pass over the bytes fills the columns.

The walk is Python source made for one schema, because a generic reader spends its time checking the
type of every value. Small fields are decoded at once, the maps are stepped over and only their
offsets are kept (``EncodedMaps``). A schema of an unexpected shape raises OddSchema, and
``record_reader`` reads it instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

from icesql.iceberg.avro.container import AvroFile
from icesql.iceberg.avro.schema import AvroField, AvroNode, OddSchema, parse_avro_schema
from icesql.iceberg.manifest import schema as known
from icesql.iceberg.manifest.columns import ManifestColumns
from icesql.iceberg.manifest.entries import (
    EncodedArrays,
    EncodedMaps,
)
from icesql.iceberg.manifest.partition_values import UNSTORED, PartitionFields, partition_converter
from icesql.iceberg.manifest.walk_source import INTEGERS, WalkLines
from icesql.iceberg.types import IcebergType

Walk = Callable[[bytes, Sequence[tuple[int, int, int]], ManifestColumns, "_Offsets", str], None]

_DISTINCT_COUNTS: Final = 111
_MAPS: Final = known.COUNT_MAPS | known.BOUND_MAPS


class _Offsets:
    """The offsets of maps and arrays, and the maps that must be read item by item."""

    def __init__(self, names: Iterable[str]) -> None:
        self.starts: dict[str, list[int]] = {name: [] for name in names}
        self.irregular: dict[str, set[int]] = {name: set() for name in self.starts}
        self.arrays: dict[str, dict[int, int]] = {}


def read_manifest(
    file: AvroFile,
    partition_types: Sequence[IcebergType],
    partition_fields: PartitionFields = None,
) -> ManifestColumns:
    """The columns of a manifest.

    Raises CorruptFileError, Malformed for an invalid Avro schema, OddSchema for a
    schema that ``record_reader`` has to read.
    """
    walk, maps = _compiled(file.schema, tuple(partition_types), partition_fields)
    offsets = _Offsets(maps)
    columns = ManifestColumns([], [], [], [], [], [], [], [], [], [])
    walk(file.data, file.blocks, columns, offsets, file.path)
    for name in maps:
        columns.maps[name] = EncodedMaps(
            file.data,
            offsets.starts[name],
            offsets.irregular[name],
            "bytes" if name in known.BOUND_MAPS.values() else "long",
            file.path,
        )
    for name, starts in offsets.arrays.items():
        columns.rare[name] = EncodedArrays(file.data, starts, file.path)
    count = len(columns.status)
    for column in (columns.snapshot_id, columns.sequence_number, columns.file_sequence_number):
        column.extend([None] * (count - len(column)))
    columns.content.extend([0] * (count - len(columns.content)))
    columns.record_count.extend([-1] * (count - len(columns.record_count)))
    unstored = (UNSTORED,) * len(partition_types)
    columns.partition.extend([unstored] * (count - len(columns.partition)))
    return columns


@lru_cache(maxsize=64)
def _compiled(
    schema: bytes, types: tuple[IcebergType, ...], spec: PartitionFields
) -> tuple[Walk, tuple[str, ...]]:
    root = parse_avro_schema(schema)
    generator = _WalkGenerator(types, spec)
    generator.entry(root)
    return generator.compile(), tuple(generator.maps)


def read_partitions(
    file: AvroFile,
    encoded: Sequence[bytes],
    partition_types: Sequence[IcebergType],
    partition_fields: PartitionFields = None,
) -> list[tuple[Any, ...]]:
    """The partitions in the encoded partition records of a manifest, each kind decoded once.

    Raises as ``read_manifest`` does.
    """
    walk = _partition_walk(file.schema, tuple(partition_types), partition_fields)
    kinds = list(dict.fromkeys(encoded))
    data = b"".join(kinds)
    columns = ManifestColumns([], [], [], [], [], [], [], [], [], [])
    walk(data, ((len(kinds), len(data), 0),), columns, _Offsets(()), file.path)
    known_ones = dict(zip(kinds, columns.partition, strict=True))
    return [known_ones[each] for each in encoded]


@lru_cache(maxsize=64)
def _partition_walk(schema: bytes, types: tuple[IcebergType, ...], spec: PartitionFields) -> Walk:
    data_file = known.by_field_id(parse_avro_schema(schema), known.ENTRY_NAMES)[known.DATA_FILE]
    fields = known.by_field_id(data_file.node, known.FILE_NAMES)
    generator = _WalkGenerator(types, spec)
    generator.optional_partition(fields[known.PARTITION].node)
    return generator.compile()


class _WalkGenerator(WalkLines):
    """The lines of a walk over manifest entries."""

    def __init__(self, types: tuple[IcebergType, ...], spec: PartitionFields) -> None:
        super().__init__()
        self.types, self.spec = types, spec
        self.maps: list[str] = []

    # ------------------------------------------------------------------ records

    def entry(self, root: AvroNode) -> None:
        fields = known.by_field_id(root, known.ENTRY_NAMES)
        if known.STATUS not in fields or known.DATA_FILE not in fields:
            raise OddSchema("entries without status or data_file")
        ids = {id(each): field_id for field_id, each in fields.items()}
        for each in known.fields_of(root):
            match ids.get(id(each)):
                case known.STATUS:
                    self.integer_column("status", each.node)
                case known.SNAPSHOT_ID:
                    self.repeating_column("snapshot_id", each.node)
                case known.SEQUENCE_NUMBER:
                    self.repeating_column("sequence_number", each.node)
                case known.FILE_SEQUENCE_NUMBER:
                    self.repeating_column("file_sequence_number", each.node)
                case known.DATA_FILE:
                    self.only_branch(each.node, "data_file", lambda node: self.data_file(node))
                case _:
                    self.skip(each.node)

    def data_file(self, record: AvroNode) -> None:
        fields = known.by_field_id(record, known.FILE_NAMES)
        if missing := known.NEEDED - fields.keys():
            raise OddSchema(f"data files without field {min(missing)}")
        ids = {id(each): field_id for field_id, each in fields.items()}
        for each in record.fields:
            match ids.get(id(each)):
                case known.CONTENT:
                    self.integer_column("content", each.node, 0)
                case known.FILE_PATH:
                    self.text_column("path", each.node)
                case known.FILE_FORMAT:
                    self.repeating_text_column("file_format", each.node)
                case known.PARTITION:
                    self.optional_partition(each.node)
                case known.RECORD_COUNT:
                    self.integer_column("record_count", each.node, -1)
                case known.FILE_SIZE:
                    self.integer_column("file_size_in_bytes", each.node)
                case int() as field_id if field_id in _MAPS:
                    self.map_column(_MAPS[field_id], each.node, field_id in known.BOUND_MAPS)
                case int() as field_id if field_id in known.RARE:
                    self.rare(known.RARE[field_id], each.node)
                case _:
                    self.skip(each.node)

    def optional_partition(self, node: AvroNode) -> None:
        inner = node.non_null
        if inner is None or inner.kind != "record":
            raise OddSchema(f"a partition that is a {node.kind}")
        append = self.appender("partition")
        none = self.constant((UNSTORED,) * len(self.types))
        self.optional(node, lambda: self.partition(inner), lambda: self.add(f"v = {none}"))
        self.add(f"{append}(v)")

    def partition(self, record: AvroNode) -> None:
        stored = known.partition_fields(record, self.spec, len(self.types))
        variable: dict[int, str] = {}
        type_of = {id(each): type_ for each, type_ in zip(stored, self.types, strict=True)}
        for position, each in enumerate(record.fields):
            if id(each) not in type_of:
                self.skip(each.node)
                continue
            variable[id(each)] = f"x{position}"
            self.partition_value(f"x{position}", each, type_of[id(each)])
        unstored = self.constant(UNSTORED)
        values = "".join(f"{variable.get(id(each), unstored)}, " for each in stored)
        self.add(f"v = ({values})")

    def partition_value(self, name: str, field: AvroField, type_: IcebergType) -> None:
        node = field.node.non_null
        if node is None:
            raise OddSchema(f"partition value {field.name!r} of an unusual union")
        convert = partition_converter(node, type_)

        def value() -> None:
            self.value(name, node)
            if convert is not None:
                self.add(f"{name} = {self.constant(convert)}({name})")

        self.optional(field.node, value, lambda: self.add(f"{name} = None"))

    # ------------------------------------------------------------------ columns

    def appender(self, column: str) -> str:
        self.head.append(f"{column}_append = columns.{column}.append")
        return f"{column}_append"

    def integer_column(self, column: str, node: AvroNode, null: int | None = None) -> None:
        inner = node.non_null
        if inner is None or inner.kind not in INTEGERS:
            raise OddSchema(f"{column} is a {node.kind}")
        append = self.appender(column)
        if null is None:
            self.only_branch(node, column, lambda _: self.varint("v"))
        else:
            self.optional(node, lambda: self.varint("v"), lambda: self.add(f"v = {null}"))
        self.add(f"{append}(v)")

    def text_column(self, column: str, node: AvroNode) -> None:
        self.text(column, node)
        self.add(f"{self.appender(column)}(v)")

    def text(self, column: str, node: AvroNode) -> None:
        inner = node.non_null
        if inner is None or inner.kind != "string":
            raise OddSchema(f"{column} is a {node.kind}")
        self.only_branch(node, column, lambda inner: self.value("v", inner))

    def repeating_text_column(self, column: str, node: AvroNode) -> None:
        self.repeating(column, lambda: self.text(column, node))

    def repeating_column(self, column: str, node: AvroNode) -> None:
        inner = node.non_null
        if inner is None or inner.kind not in INTEGERS:
            raise OddSchema(f"{column} is a {node.kind}")
        self.repeating(
            column,
            lambda: self.optional(node, lambda: self.varint("v"), lambda: self.add("v = None")),
        )

    def repeating(self, column: str, read: Callable[[], None]) -> None:
        """Read a value into ``v`` unless its bytes are those of the entry before."""
        # No bytes start with an empty tuple of prefixes.
        self.head.append(f"{column}_bytes, {column}_value, {column}_size = (), None, 0")
        append = self.appender(column)
        self.add(f"if data.startswith({column}_bytes, p):", f" p += {column}_size", "else:")
        self.indent += 1
        self.add("start = p")
        read()
        self.add(
            f"{column}_bytes = data[start:p]",
            f"{column}_size = p - start",
            f"{column}_value = v",
        )
        self.indent -= 1
        self.add(f"{append}({column}_value)")

    def map_column(self, name: str, node: AvroNode, is_bytes: bool) -> None:
        inner = node.non_null
        key, value_node = known.pair_fields(node)
        pair = None if inner is None else inner.items[0]
        if pair is None or pair.kind != "record" or key is not pair.fields[0]:
            raise OddSchema(f"{name} is not a map from field ids")
        if key.node.kind not in INTEGERS:
            raise OddSchema(f"{name} has keys of {key.node.kind}")
        if value_node.node.kind not in (("bytes",) if is_bytes else INTEGERS):
            raise OddSchema(f"{name} has values of {value_node.node.kind}")
        self.maps.append(name)
        kind = "bytes" if is_bytes else "long"
        self.head.append(f"{name}_append = offsets.starts[{name!r}].append")
        self.head.append(f"{name}_irregular = offsets.irregular[{name!r}].add")

        def value() -> None:
            self.add(f"{name}_append(p)")
            self.jump(
                f"{kind}_map_skips",
                [f"{name}_irregular(i)", f"p = end_of_map(data, p, {kind!r})"],
            )

        self.optional(node, value, lambda: self.add(f"{name}_append(-1)"))

    def rare(self, name: str, node: AvroNode) -> None:
        inner = node.non_null
        if inner is None:
            raise OddSchema(f"{name} is an unusual union")
        if name in ("split_offsets", "equality_ids"):
            if inner.kind != "array" or inner.items[0].kind not in INTEGERS:
                raise OddSchema(f"{name} is a {inner.kind}")
            self.head.append(f"{name} = offsets.arrays[{name!r}] = {{}}")

            def array() -> None:
                self.add(f"{name}[i] = p")
                self.jump("long_array_skips", ["p = read_long_array(data, p)[1]"])

            self.optional(node, array, None)
            return
        expected = {"key_metadata": ("bytes",), "referenced_data_file": ("string",)}
        if inner.kind not in expected.get(name, INTEGERS):
            raise OddSchema(f"{name} is a {inner.kind}")
        self.head.append(f"{name} = columns.rare[{name!r}] = {{}}")

        def scalar() -> None:
            self.value("v", inner)
            self.add(f"{name}[i] = v")

        self.optional(node, scalar, None)
