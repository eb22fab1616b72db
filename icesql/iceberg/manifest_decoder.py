"""A manifest walker compiled from the writer schema: one pass over the bytes fills the columns.

The walk is Python source made for one schema, because what costs in a generic reader is asking
every value for its type. Small fields are read where they lie, the maps are stepped over and only
where they begin is kept (``encoded_maps``). A schema of an unexpected shape raises OddSchema,
and ``manifest_reference`` reads it instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

from icesql.errors import CorruptFileError
from icesql.iceberg import manifest_schema as known
from icesql.iceberg.avro_file import AvroFile, BadAvro
from icesql.iceberg.avro_reader import compile_reader
from icesql.iceberg.avro_schema import AvroField, AvroNode, OddSchema, parse_avro_schema
from icesql.iceberg.encoded_maps import (
    BYTES_MAP_SKIPS,
    LONG_ARRAY_SKIPS,
    LONG_MAP_SKIPS,
    EncodedArrays,
    EncodedMaps,
    read_long_array,
    read_map,
)
from icesql.iceberg.manifest_columns import ManifestColumns
from icesql.iceberg.partition_values import partition_converter
from icesql.iceberg.types import IcebergType

Walk = Callable[[bytes, Sequence[tuple[int, int, int]], ManifestColumns, "_Offsets", str], None]

_DISTINCT_COUNTS: Final = 111
_MAPS: Final = known.COUNT_MAPS | known.BOUND_MAPS
_INTEGERS: Final = ("int", "long")


class _Offsets:
    """Where the maps and arrays begin, and which maps need the slow way."""

    def __init__(self, names: Iterable[str]) -> None:
        self.starts: dict[str, list[int]] = {name: [] for name in names}
        self.irregular: dict[str, set[int]] = {name: set() for name in self.starts}
        self.arrays: dict[str, dict[int, int]] = {}


def read_manifest(
    file: AvroFile,
    partition_types: Sequence[IcebergType],
    partition_field_ids: tuple[int, ...] | None = None,
) -> ManifestColumns:
    """The columns of a manifest.

    Raises CorruptFileError, Malformed for something that is no Avro schema, OddSchema for a
    schema that the reference has to read.
    """
    walk, maps = _compiled(file.schema, tuple(partition_types), partition_field_ids)
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
    columns.partition.extend([()] * (count - len(columns.partition)))
    return columns


@lru_cache(maxsize=64)
def _compiled(
    schema: bytes, types: tuple[IcebergType, ...], field_ids: tuple[int, ...] | None
) -> tuple[Walk, tuple[str, ...]]:
    root, _ = parse_avro_schema(schema)
    source = _Source(types, field_ids)
    source.entry(root)
    return source.compile(), tuple(source.maps)


class _Source:
    """Collects the lines of a walk and the values that they refer to."""

    def __init__(self, types: tuple[IcebergType, ...], field_ids: tuple[int, ...] | None) -> None:
        self.types, self.field_ids = types, field_ids
        self.head: list[str] = []
        self.body: list[str] = []
        self.indent = 3
        self.maps: list[str] = []
        self.names: dict[str, Any] = {
            "BadAvro": BadAvro,
            "CorruptFileError": CorruptFileError,
            "read_map": read_map,
            "read_long_array": read_long_array,
            "long_map_skips": LONG_MAP_SKIPS,
            "bytes_map_skips": BYTES_MAP_SKIPS,
            "long_array_skips": LONG_ARRAY_SKIPS,
        }

    def compile(self) -> Walk:
        lines = [
            "def walk(data, blocks, columns, offsets, path):",
            *(" " + line for line in self.head),
            " i = p = 0",
            " for count, end, offset in blocks:",
            "  try:",
            "   for _ in range(count):",
            *(" " + line for line in self.body),
            "    i += 1",
            "   if p != end:",
            "    raise BadAvro('a block does not end where its records end')",
            "  except (IndexError, BadAvro, UnicodeDecodeError) as error:",
            "   problem = 'a block ends early' if isinstance(error, IndexError) else error",
            "   text = f'bad Avro block: {problem}'",
            "   raise CorruptFileError(path, text, offset=offset) from error",
        ]
        exec(compile("\n".join(lines), "<manifest walk>", "exec"), self.names)
        walk: Walk = self.names["walk"]
        return walk

    def add(self, *lines: str) -> None:
        self.body.extend(" " * self.indent + line for line in lines)

    def constant(self, value: Any) -> str:
        name = f"k{len(self.names)}"
        self.names[name] = value
        return name

    # ------------------------------------------------------------------ records

    def entry(self, root: AvroNode) -> None:
        fields = known.by_field_id(root, known.ENTRY_NAMES)
        if known.STATUS not in fields or known.DATA_FILE not in fields:
            raise OddSchema("entries without status or data_file")
        ids = {id(each): field_id for field_id, each in fields.items()}
        for each in root.fields:
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
                    self.data_file(each.node)
                case _:
                    self.skip(each.node)

    def data_file(self, record: AvroNode) -> None:
        fields = known.by_field_id(record, known.FILE_NAMES)
        needed = {known.FILE_PATH, known.FILE_FORMAT, known.RECORD_COUNT, known.FILE_SIZE}
        if missing := needed - fields.keys():
            raise OddSchema(f"data files without field {min(missing)}")
        if known.PARTITION not in fields and self.types:
            raise OddSchema("data files without partition")
        ids = {id(each): field_id for field_id, each in fields.items()}
        for each in record.fields:
            match ids.get(id(each)):
                case known.CONTENT:
                    self.integer_column("content", each.node)
                case known.FILE_PATH:
                    self.text_column("path", each.node)
                case known.FILE_FORMAT:
                    self.repeating_text_column("file_format", each.node)
                case known.PARTITION:
                    self.partition(each.node)
                case known.RECORD_COUNT:
                    self.integer_column("record_count", each.node)
                case known.FILE_SIZE:
                    self.integer_column("file_size_in_bytes", each.node)
                case int() as field_id if field_id in _MAPS:
                    self.map_column(_MAPS[field_id], each.node, field_id in known.BOUND_MAPS)
                case int() as field_id if field_id in known.RARE:
                    self.rare(known.RARE[field_id], each.node)
                case _:
                    self.skip(each.node)

    def partition(self, record: AvroNode) -> None:
        if record.kind != "record":
            raise OddSchema(f"a partition that is a {record.kind}")
        stored = known.partition_fields(record, self.field_ids, len(self.types))
        variable: dict[int, str] = {}
        type_of = {id(each): type_ for each, type_ in zip(stored, self.types, strict=True)}
        for position, each in enumerate(record.fields):
            if id(each) not in type_of:
                self.skip(each.node)
                continue
            variable[id(each)] = f"x{position}"
            self.partition_value(f"x{position}", each, type_of[id(each)])
        values = "".join(f"{variable[id(each)]}, " for each in stored)
        self.add(f"{self.appender('partition')}(({values}))")

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

    def integer_column(self, column: str, node: AvroNode) -> None:
        if node.kind not in _INTEGERS:
            raise OddSchema(f"{column} is a {node.kind}")
        self.varint("v")
        self.add(f"{self.appender(column)}(v)")

    def text_column(self, column: str, node: AvroNode) -> None:
        if node.kind != "string":
            raise OddSchema(f"{column} is a {node.kind}")
        self.value("v", node)
        self.add(f"{self.appender(column)}(v)")

    def repeating_text_column(self, column: str, node: AvroNode) -> None:
        if node.kind != "string":
            raise OddSchema(f"{column} is a {node.kind}")
        self.repeating(column, lambda: self.value("v", node))

    def repeating_column(self, column: str, node: AvroNode) -> None:
        inner = node.non_null
        if inner is None or inner.kind not in _INTEGERS:
            raise OddSchema(f"{column} is a {node.kind}")
        self.repeating(
            column,
            lambda: self.optional(node, lambda: self.varint("v"), lambda: self.add("v = None")),
        )

    def repeating(self, column: str, read: Callable[[], None]) -> None:
        """Read a value into ``v`` unless its bytes are those of the entry before."""
        # An empty tuple is the start that no bytes start with.
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
        if inner is None or key is not inner.items[0].fields[0] or key.node.kind not in _INTEGERS:
            raise OddSchema(f"{name} is no map from field ids")
        if value_node.node.kind not in (("bytes",) if is_bytes else _INTEGERS):
            raise OddSchema(f"{name} has values of {value_node.node.kind}")
        self.maps.append(name)
        kind = "bytes" if is_bytes else "long"
        self.head.append(f"{name}_append = offsets.starts[{name!r}].append")
        self.head.append(f"{name}_irregular = offsets.irregular[{name!r}].add")

        def value() -> None:
            self.add(f"{name}_append(p)")
            self.jump(
                f"{kind}_map_skips",
                [f"{name}_irregular(i)", f"p = read_map(data, p, {kind!r})[1]"],
            )

        self.optional(node, value, lambda: self.add(f"{name}_append(-1)"))

    def rare(self, name: str, node: AvroNode) -> None:
        inner = node.non_null
        if inner is None:
            raise OddSchema(f"{name} is an unusual union")
        if name in ("split_offsets", "equality_ids"):
            if inner.kind != "array" or inner.items[0].kind not in _INTEGERS:
                raise OddSchema(f"{name} is a {inner.kind}")
            self.head.append(f"{name} = offsets.arrays[{name!r}] = {{}}")

            def array() -> None:
                self.add(f"{name}[i] = p")
                self.jump("long_array_skips", ["p = read_long_array(data, p)[1]"])

            self.optional(node, array, None)
            return
        expected = {"key_metadata": ("bytes",), "referenced_data_file": ("string",)}
        if inner.kind not in expected.get(name, _INTEGERS):
            raise OddSchema(f"{name} is a {inner.kind}")
        self.head.append(f"{name} = columns.rare[{name!r}] = {{}}")

        def scalar() -> None:
            self.value("v", inner)
            self.add(f"{name}[i] = v")

        self.optional(node, scalar, None)

    # ------------------------------------------------------------------ values

    def optional(
        self, node: AvroNode, value: Callable[[], None], null: Callable[[], None] | None
    ) -> None:
        """Read the branch of an optional, or the value itself where the type is no union."""
        if node.kind != "union":
            if node.kind == "null":
                raise OddSchema("a field that is always null")
            value()
            return
        null_byte = 0 if node.items[0].kind == "null" else 2
        self.add("b = data[p]", "p += 1", f"if b == {2 - null_byte}:")
        self.indent += 1
        value()
        self.indent -= 1
        self.add(f"elif b == {null_byte}:")
        self.indent += 1
        self.add("pass") if null is None else null()
        self.indent -= 1
        self.add("else:", " raise BadAvro('a union has no such branch')")

    def varint(self, name: str) -> None:
        self.add(
            "b = data[p]",
            "p += 1",
            "if b > 127:",
            " n = b & 127",
            " s = 7",
            " while b > 127:",
            "  if s > 63:",
            "   raise BadAvro('integer longer than 64 bits')",
            "  b = data[p]",
            "  p += 1",
            "  n |= (b & 127) << s",
            "  s += 7",
            f" {name} = (n >> 1) ^ -(n & 1)",
            "else:",
            f" {name} = (b >> 1) ^ -(b & 1)",
        )

    def value(self, name: str, node: AvroNode) -> None:
        match node.kind:
            case "int" | "long":
                self.varint(name)
            case "string" | "bytes":
                self.varint("n")
                self.add("if n < 0:", " raise BadAvro('a negative length')", "e = p + n")
                text = "str(data[p:e], 'utf-8')" if node.kind == "string" else "data[p:e]"
                self.add(f"{name} = {text}", "p = e")
            case _:
                self.add(f"{name}, p = {self.constant(compile_reader(node))}(data, p)")

    def jump(self, skips: str, otherwise: Sequence[str]) -> None:
        """Step over a map or array by its number of items, or else the slow way."""
        self.add(
            "n = data[p]",
            "if n == 0:",
            " p += 1",
            "else:",
            " e = p + 1",
            " if n > 127:",
            "  n = n & 127 | data[e] << 7 if data[e] < 128 else 1",
            "  e += 1",
            # An odd number is a negative count, or one of more than two bytes.
            f" m = None if n & 1 or n == 0 else {skips}[n >> 1](data, e)",
            " if m is None:",
            *("  " + line for line in otherwise),
            " else:",
            "  p = m.end()",
        )

    def skip(self, node: AvroNode) -> None:
        if node.kind in _INTEGERS:
            self.varint("v")
        else:
            self.add(f"_, p = {self.constant(compile_reader(node))}(data, p)")
