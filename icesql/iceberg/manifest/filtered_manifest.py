"""Decode a data manifest for one filter: its bounds first, the rest only for files that remain."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from icesql.iceberg.avro.container import AvroFile
from icesql.iceberg.avro.schema import AvroNode, OddSchema, parse_avro_schema
from icesql.iceberg.avro.values import BadAvro, read_varint
from icesql.iceberg.manifest.compiled_walk import read_manifest, read_partitions
from icesql.iceberg.manifest.entries import DELETED, ManifestEntries
from icesql.iceberg.manifest.entry_shape import (
    EntryShape,
    Rows,
    Wanted,
    learn_shape,
    whole_value,
)
from icesql.iceberg.manifest.manifest import (
    ManifestContent,
    ManifestFile,
    check_count,
    check_entries,
    first_row_ids,
    inherit,
    open_manifest,
)
from icesql.iceberg.manifest.partition_values import PartitionForm
from icesql.iceberg.manifest.schema import BOUND_MAPS
from icesql.iceberg.metadata.json_fields import Malformed, of_file

# ------------------------------------------------------------------ columns as stored bytes
# Values are encoded as in the manifest, so pruning evaluates them anew each time.


_VERSION: Final = 3
_DECODER: Final = msgspec.msgpack.Decoder(
    tuple[int, list[int], dict[str | tuple[str, int], list[bytes]]]
)


def packed(lengths: Sequence[int], columns: Columns) -> bytes:
    """The bytes of columns of entries that have these lengths."""
    return msgspec.msgpack.encode((_VERSION, [*lengths], columns))


def unpacked(data: bytes) -> tuple[list[int], Columns] | None:
    """The lengths and the columns again; None for bytes that ``packed`` did not write."""
    try:
        version, lengths, columns = _DECODER.decode(data)
    except msgspec.DecodeError:
        return None
    fits = all(len(each) in (0, len(lengths)) for each in columns.values())
    return (lengths, columns) if version == _VERSION and fits else None


# ------------------------------------------------------------------ narrow entries
# The entries of a data manifest as a filter sees them: the values it needs, and little else.
#
# For most files a filter needs two bounds and whether they are live. The rest of an entry is
# decoded when its file remains, or when another value is needed.


# A table whose entries have more shapes than this is not worth the trouble.
_MOST_SHAPES: Final = 10
_MOST_FAILURES: Final = 4
_ALWAYS: Final = ("entry", "status", "record_count", "partition")

Columns = dict[str | Wanted, list[bytes]]


class NarrowEntries:
    """Columns by which files are pruned; index for index those of the whole ``ManifestEntries``.

    ``file`` opens the manifest, and is called when a file remains; ``lengths`` are the bytes of
    each entry, ``size`` is about how many bytes are held, without the cost of each entry.

    Raises CorruptFileError where the list says that there are more entries.
    """

    def __init__(
        self,
        file: Callable[[], AvroFile],
        lengths: Sequence[int],
        columns: Columns,
        size: int,
        manifest: ManifestFile,
        path: str,
        form: PartitionForm,
    ) -> None:
        check_count(manifest, len(lengths), path)
        self._open, self._manifest, self._path, self._form = file, manifest, path, form
        self._lengths, self.kept_bytes = lengths, size
        self.status = [each[0] >> 1 for each in columns["status"]]
        self.count = len(self.status)
        self._columns = columns
        self._decoded: dict[Wanted, list[Any]] = {}

    def __len__(self) -> int:
        return self.count

    @cached_property
    def file(self) -> AvroFile:
        """The manifest."""
        return self._open()

    def packed(self) -> bytes:
        """For ``unpacked``."""
        return packed(self._lengths, self._columns)

    @property
    def wanted(self) -> frozenset[Wanted]:
        """The values that are at hand."""
        return frozenset(each for each in self._columns if isinstance(each, tuple))

    @cached_property
    def live(self) -> list[bool]:
        """Whether each entry is part of the table, that is not DELETED."""
        return [status != DELETED for status in self.status]

    @cached_property
    def record_count(self) -> list[int]:
        """The rows of each file."""
        return of_file(_integers(self._columns["record_count"]))

    @property
    def unknown_counts(self) -> Sequence[int]:
        """The entries of unknown record counts."""
        return [index for index, count in enumerate(self.record_count) if count < 0]

    @cached_property
    def partition(self) -> list[tuple[Any, ...]]:
        """The partition of each file."""
        return read_partitions(self.file, self._columns["partition"], self._form)

    def values_of(self, name: str, field_id: int) -> list[Any]:
        """The count or bound of one column in every file, by the name of its map."""
        found = self._decoded.get((name, field_id))
        if found is None and (encoded := self._columns.get((name, field_id))) is not None:
            decode = whole_value if name in BOUND_MAPS.values() else _count
            found = self._decoded[name, field_id] = [decode(each) for each in encoded]
        return self.whole.values_of(name, field_id) if found is None else found

    @cached_property
    def whole(self) -> ManifestEntries:
        """All entries, fully decoded."""
        return self._decode(self.file)

    def _decode(self, file: AvroFile) -> ManifestEntries:
        return inherit(read_manifest(file, self._form), self._manifest, self._path)

    def narrowed_to(self, indexes: Sequence[int]) -> tuple[ManifestEntries, Sequence[int]]:
        """Some of the entries alone, fully decoded."""
        ends = list(accumulate(self._lengths))
        data = b"".join(self.file.data[ends[i] - self._lengths[i] : ends[i]] for i in indexes)
        blocks = ((len(indexes), len(data), self.file.blocks[0][2]),)
        found = self._decode(replace(self.file, data=data, blocks=blocks))
        encoded = self._columns.get("first_row_id", ())
        own = {i: v for i, each in enumerate(encoded) if (v := _optional_long(each)) is not None}
        ids = first_row_ids(self, own, self._manifest)
        if ids:
            given = {at: ids[index] for at, index in enumerate(indexes) if index in ids}
            found = replace(found, rare={**found.rare, "first_row_id": given})
        return found, range(len(indexes))


def narrow_columns(file: AvroFile, wanted: frozenset[Wanted]) -> Columns | None:
    """The columns of the entries that a filter uses; None if they need a whole decode."""
    try:
        # Tables of one partitioning share the Avro schema; the table schema identifies their
        # columns.
        shapes = _shapes(file.schema, file.metadata.get("schema", b""), wanted)
    except (Malformed, OddSchema):
        return None
    return shapes.read(file)


@lru_cache(maxsize=16)
def _shapes(schema: bytes, table_schema: bytes, wanted: frozenset[Wanted]) -> _Shapes:
    return _Shapes(parse_avro_schema(schema), wanted)


class _Shapes:
    """The shapes of the entries of one table; the one matched last comes first."""

    def __init__(self, root: AvroNode, wanted: frozenset[Wanted]) -> None:
        self._root, self._wanted = root, wanted
        self._known: tuple[EntryShape, ...] = ()
        self._lengths: dict[str | Wanted, set[int]] = {}
        self._learnt = self._failures = 0
        self._lock = threading.Lock()

    def read(self, file: AvroFile) -> Columns | None:
        """The columns of a file; None if an entry has no shape, or there are too many shapes."""
        if self._failures >= _MOST_FAILURES:
            return None
        columns: Columns = {name: [] for name in _ALWAYS}
        position = read = 0
        try:
            for count, end, _ in file.blocks:
                read += count
                while position < end:
                    shape, rows = self._next(file.data, position, end)
                    values = list(zip(*rows, strict=True))
                    for name, each in zip(("entry", *shape.names), values, strict=True):
                        columns.setdefault(name, []).extend(each)
                    position += sum(map(len, values[0]))
                if len(columns["entry"]) != read:
                    raise BadAvro("a block of another number of entries than it says")
        except (OddSchema, BadAvro, IndexError):
            self._failures += 1
            return None
        self._failures = 0
        return columns

    def _next(self, data: bytes, position: int, end: int) -> tuple[EntryShape, Rows]:
        """The entries from a position on as far as they are of one shape, at least one."""
        known = self._known
        for shape in known:
            rows = shape.findall(data, position, end)
            if not rows[-1][0]:  # the rest of the block
                rows.pop()
            if rows:
                if shape is not known[0]:
                    self._known = (shape, *(each for each in known if each is not shape))
                return shape, rows
        with self._lock:
            if self._learnt >= _MOST_SHAPES:
                raise OddSchema("entries of many shapes")
            self._learnt += 1
            shape = learn_shape(self._root, self._wanted, data, position, self._lengths)
            self._known = (shape, *self._known)
        rows = shape.findall(data, position, end)
        if not rows[-1][0]:
            rows.pop()
        if not rows:
            raise BadAvro("an entry that ends beyond its block")
        return shape, rows


def _integers(encoded: Sequence[bytes]) -> list[int]:
    known = {each: read_varint(each, 0)[0] for each in set(encoded)}
    return [known[each] for each in encoded]


def _count(encoded: bytes) -> int | None:
    return read_varint(encoded, 0)[0] if encoded else None


def _optional_long(encoded: bytes) -> int | None:
    # Either a byte for null, or one for a value and the value; a plain value is never alone.
    return read_varint(encoded, 1)[0] if len(encoded) > 1 else None


# ------------------------------------------------------------------ the manifest


def decode_for_filter(
    data: bytes | AvroFile,
    manifest: ManifestFile,
    wanted: frozenset[Wanted],
    *,
    path: str,
    form: PartitionForm,
) -> ManifestEntries | NarrowEntries:
    """Decode a manifest, of a data manifest only the bounds that a filter needs where that pays.

    ``wanted`` names the bounds: (map, field id). ``data`` may be a file that was unpacked before.
    Raises as ``decode_manifest`` does; errors in other values are raised when those are decoded.
    """
    if isinstance(data, AvroFile):
        file, size = data, None
    else:
        file, size = open_manifest(data, manifest, path, form), len(data)
    # A file of another length may be another manifest; only all entries show who wrote it.
    is_listed = size is None or manifest.manifest_length in (None, size)
    if manifest.content is ManifestContent.DATA and is_listed:
        columns = narrow_columns(file, wanted)
        if columns is not None:
            lengths = [*map(len, columns.pop("entry"))]
            held = len(file.data)
            return NarrowEntries(lambda: file, lengths, columns, held, manifest, path, form)
    found = read_manifest(file, form)
    check_entries(found, manifest, size, path)
    return inherit(found, manifest, path)


def from_stored(
    stored: bytes,
    read: Callable[[], bytes],
    manifest: ManifestFile,
    *,
    path: str,
    form: PartitionForm,
) -> NarrowEntries | None:
    """As ``decode_for_filter`` gave them when they were stored; ``read`` reads the manifest.

    None for bytes that are no stored columns. Raises CorruptFileError where the list says that
    there are more.
    """
    found = unpacked(stored)
    if found is None:
        return None

    def file() -> AvroFile:
        return open_manifest(read(), manifest, path, form)

    return NarrowEntries(file, *found, len(stored), manifest, path, form)
