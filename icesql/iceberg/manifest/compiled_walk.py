"""A manifest walker compiled from the writer schema: one pass over the bytes fills the columns.

The walk is Python source made for one schema, because a generic reader spends its time checking the
type of every value. Small fields are decoded at once, the maps are stepped over and only their
offsets are kept (``EncodedMaps``). It reads every schema that resolves under Avro's rules, whatever
unions it has; maps and arrays of an unusual shape are decoded at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from typing import Any, Final

from icesql.errors import CorruptFileError
from icesql.iceberg.avro.container import AvroFile
from icesql.iceberg.avro.schema import AvroNode, OddSchema, parse_avro_schema
from icesql.iceberg.avro.values import BadAvro
from icesql.iceberg.manifest import schema as known
from icesql.iceberg.manifest.columns import ManifestColumns
from icesql.iceberg.manifest.entries import EncodedArrays, EncodedMaps, Kind, PlainMaps
from icesql.iceberg.manifest.partition_values import UNSTORED, PartitionForm, partition_converter
from icesql.iceberg.manifest.walk_source import WalkLines
from icesql.iceberg.metadata.json_fields import Malformed
from icesql.iceberg.types import IcebergType

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
