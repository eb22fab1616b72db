"""DeleteIndex: which delete files apply to a data file, by scope and sequence number."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from struct import pack
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote

from msgspec.structs import replace

from icesql.errors import CorruptFileError
from icesql.iceberg import types as t
from icesql.iceberg.bounds import bound_decoder
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.manifest.partition_values import UNSTORED
from icesql.iceberg.partitioning import PartitionSpec
from icesql.iceberg.schema import DELETE_FILE_PATH, Schema
from icesql.scan.tasks import without_metrics

if TYPE_CHECKING:
    from icesql.catalog.table import Table


# ------------------------------------------------------------------ overlap of keys
# Whether the keys of an equality delete file can occur in a data file, by bounds and counts.


class ColumnFacts(NamedTuple):
    """Counts and bounds of one column in one file; unknown counts as "may".

    Bounds are decoded and enclose all values that are neither NULL nor NaN; None when unusable.
    """

    may_be_null: bool
    all_null: bool
    may_be_nan: bool
    lower: Any
    upper: Any


class Overlap:
    """The overlap test of a table; ``schema`` also has the columns that were dropped since."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def columns_of(
        self, field_ids: Iterable[int], deletes: Sequence[DataFile]
    ) -> list[DeleteColumn]:
        """The columns that can separate a delete file from a data file, with their facts.

        Nested types, columns that no schema has, and fields inside lists and maps do not count.
        """
        columns = []
        for field_id in field_ids:
            column = self._schema.field_by_id.get(field_id)
            if (
                column is not None
                and isinstance(column.type, t.PrimitiveType)
                and not self._schema.inside_repeated(field_id)
            ):
                never_null = self._schema.always_present(field_id)
                columns.append(DeleteColumn(column, never_null, deletes))
        return columns


class DeleteColumn:
    """One equality column in the delete files of one group, in their order."""

    def __init__(
        self, column: t.NestedField, never_null: bool, deletes: Sequence[DataFile]
    ) -> None:
        self.field_id = column.field_id
        self._never_null, self._floating = never_null, t.is_floating(column.type)
        self._decode = _decoder(column)
        self._facts = [self.facts_of(delete) for delete in deletes]
        self._any_may_be_null = any(facts.may_be_null for facts in self._facts)
        self._any_all_null = any(facts.all_null for facts in self._facts)
        self._all_bounded = all(
            facts.lower is not None and facts.upper is not None for facts in self._facts
        )
        self._lowers = [facts.lower for facts in self._facts]
        self._uppers = [facts.upper for facts in self._facts]
        # From each delete on; only used where all have bounds.
        known = self._facts if self._all_bounded else ()
        self._greatest_lower = [*accumulate((each.lower for each in reversed(known)), max)][::-1]
        self._least_upper = [*accumulate((each.upper for each in reversed(known)), min)][::-1]

    def facts_of(self, file: DataFile) -> ColumnFacts:
        """The facts about this column in the metrics of a data or delete file."""
        field_id = self.field_id
        nulls = (file.null_value_counts or {}).get(field_id)
        values = (file.value_counts or {}).get(field_id)
        nans = (file.nan_value_counts or {}).get(field_id)
        lower = (file.lower_bounds or {}).get(field_id)
        upper = (file.upper_bounds or {}).get(field_id)
        least = None if lower is None else self._decode(lower)
        greatest = None if upper is None else self._decode(upper)
        if least is not None and greatest is not None and least > greatest:
            # Bounds of a writer with another order, as Java's signed UUIDs.
            least = greatest = None
        return ColumnFacts(
            may_be_null=not self._never_null and nulls != 0,
            all_null=not self._never_null and nulls is not None and nulls == values,
            may_be_nan=self._floating and nans != 0,
            lower=least,
            upper=greatest,
        )

    def overlapping(self, file: ColumnFacts, among: Sequence[int]) -> Sequence[int]:
        """Those of the deletes ``among``, some indexes, that this column does not exclude."""
        lower, upper = file.lower, file.upper
        if (
            self._all_bounded
            and lower is not None
            and upper is not None
            and not (file.may_be_null and self._any_may_be_null)
            and not file.may_be_nan
        ):
            # The usual keys: no null on one side, bounds everywhere. Upsert streams bring
            # hundreds of deletes for each of hundreds of files here, nearly all of which overlap.
            if self._greatest_lower[among[0]] <= upper and lower <= self._least_upper[among[0]]:
                return among
            lowers, uppers = self._lowers, self._uppers
            return [i for i in among if lowers[i] <= upper and lower <= uppers[i]]
        is_unbounded = lower is None or upper is None
        if is_unbounded and not file.all_null and (file.may_be_null or not self._any_all_null):
            return among  # bounds alone tell values apart
        facts = self._facts
        return [index for index in among if not excludes(facts[index], file)]


def excludes(delete: ColumnFacts, file: ColumnFacts) -> bool:
    """True only if no value of the delete's column equals one of the file's.

    NULL equals NULL and NaN equals NaN here, and neither is inside the bounds.
    """
    if delete.may_be_null and file.may_be_null:
        return False
    if (file.all_null and not delete.may_be_null) or (delete.all_null and not file.may_be_null):
        return True
    if delete.may_be_nan and file.may_be_nan:
        return False
    if delete.lower is None or delete.upper is None or file.lower is None or file.upper is None:
        return False
    return bool(delete.lower > file.upper or file.lower > delete.upper)


def _decoder(column: t.NestedField) -> Callable[[bytes], Any]:
    decode = bound_decoder(column.type)
    if isinstance(column.type, t.FixedType):
        length = column.type.length
        # A cut upper bound of another writer may not enclose the values.
        return lambda data: decode(data) if len(data) == length else None
    return decode


# ------------------------------------------------------------------ delete index


Deletes = tuple[DataFile, ...]
# Bounds of text are cut to 16 characters by default; a writer that forgets to raise the cut upper
# bound gives two equal prefixes, which are not a path.
_CUT: Final = 16


class DeleteIndex:
    """The live delete files of a snapshot, found by the data files they apply to.

    Returned files carry no metrics; only the index needs them.

    A deletion vector or position delete applies from its own sequence number down, an equality
    delete to strictly older files. Position deletes reach one path, or their partition; equality
    deletes their partition, or everything when their spec is unpartitioned. A deletion vector
    replaces all position deletes of its file. ``schema`` has every column the table ever had.
    ``same_file_key`` is equal for two spellings of one path.

    Raises CorruptFileError for two deletion vectors of one data file, for one that names no
    file, and for equality deletes without columns. Source: Iceberg spec, "Scan Planning"; Java
    ``DeleteFileIndex``.
    """

    def __init__(
        self,
        deletes: Iterable[DataFile],
        specs: Mapping[int, PartitionSpec],
        schema: Schema,
        same_file_key: Callable[[str], str],
        *,
        compare_bounds: bool = True,
    ) -> None:
        vectors = _ByPath(same_file_key)
        by_path = _ByPath(same_file_key)
        positions: dict[_Scope, list[DataFile]] = {}
        equality: dict[_Scope | None, dict[tuple[int, ...], list[DataFile]]] = {}
        for delete in deletes:
            scope = partition_of(delete)
            if delete.content == FileContent.EQUALITY_DELETES:
                if not delete.equality_ids:
                    raise CorruptFileError(delete.path, "equality deletes without equality ids")
                everywhere = specs[delete.spec_id].is_unpartitioned
                of_scope = equality.setdefault(None if everywhere else scope, {})
                of_scope.setdefault(tuple(sorted(set(delete.equality_ids))), []).append(delete)
            elif delete.is_deletion_vector:
                if delete.referenced_data_file is None:
                    raise CorruptFileError(delete.path, "a deletion vector that names no data file")
                vectors.add(delete.referenced_data_file, without_metrics(delete))
            elif (path := only_path(delete)) is not None:
                # The bounds are dropped; keep the one file that they named.
                named = replace(without_metrics(delete), referenced_data_file=path)
                by_path.add(path, named)
            else:
                positions.setdefault(scope, []).append(delete)
        self._vectors, self._by_path = vectors, by_path
        self._positions = {scope: _BySequence(held) for scope, held in positions.items()}
        self._overlap = Overlap(schema) if compare_bounds else None
        self._equality = {
            scope: [
                _EqualityDeletes(ids, held, self._overlap) for ids, held in sorted(groups.items())
            ]
            for scope, groups in equality.items()
        }

    @classmethod
    def of(
        cls, table: Table, deletes: Iterable[DataFile], *, compare_bounds: bool = True
    ) -> DeleteIndex:
        """The index of some deletes of a table."""
        metadata, same = table.metadata, table.storage.same_file_key
        return cls(
            deletes, metadata.specs, metadata.file_schema, same, compare_bounds=compare_bounds
        )

    def deletes_of(self, data_file: DataFile) -> Deletes:
        """The deletes to apply to ``data_file``: equality deletes first, then positions.

        Files with the same deletes share one tuple. Raises CorruptFileError for a deletion
        vector of this very file that is older or of another partition.
        """
        found: Deletes = ()
        if self._equality:
            facts: dict[int, ColumnFacts] = {}
            scope = partition_of(data_file)
            for group in (*self._equality.get(None, ()), *self._equality.get(scope, ())):
                found = _joined(found, group.newer_than(data_file, facts))
        if self._vectors and (vectors := self._vectors.find(data_file.path)):
            return _joined(found, (_the_vector(vectors, data_file),))
        if self._positions:
            in_partition = self._positions.get(partition_of(data_file))
            if in_partition is not None:
                found = _joined(found, in_partition.not_older_than(data_file.sequence_number))
        if self._by_path and (named := self._by_path.find(data_file.path)):
            found = _joined(found, _of_this_file(named, data_file))
        return found


_Scope = tuple[int, tuple[Any, ...]]


def partition_of(file: DataFile) -> _Scope:
    """The partition of a file: its spec, and its values as ``partition_key`` has them."""
    return file.spec_id, partition_key(file.partition)


def partition_key(partition: tuple[Any, ...]) -> tuple[Any, ...]:
    """A partition tuple to compare by: NaN equals NaN and -0.0 differs from 0.0, as in Java.

    A value that the manifest does not have is NULL here, which it is in Java too.
    """
    for value in partition:
        if value.__class__ is float or value is UNSTORED:
            return tuple(map(_comparable, partition))
    return partition


def _comparable(value: Any) -> Any:
    if value.__class__ is float:
        return b"NaN" if value != value else pack("<d", value)
    return None if value is UNSTORED else value


def _joined(first: Deletes, second: Deletes) -> Deletes:
    # Keeps a shared tuple shared when there is nothing to add to it.
    return first + second if first and second else first or second


def only_path(delete: DataFile) -> str | None:
    """The one data file that a position delete file refers to, None if there may be several."""
    if delete.referenced_data_file is not None:
        return delete.referenced_data_file
    lower = (delete.lower_bounds or {}).get(DELETE_FILE_PATH.field_id)
    upper = (delete.upper_bounds or {}).get(DELETE_FILE_PATH.field_id)
    if lower is None or lower != upper:
        return None
    try:
        path = str(lower, "utf-8")
    except UnicodeDecodeError:
        return None
    return path if len(path) > _CUT else None


def _the_vector(vectors: list[DataFile], data_file: DataFile) -> DataFile:
    if len(vectors) > 1:
        raise CorruptFileError(
            vectors[1].path,
            f"a second deletion vector for {data_file.path}; the first is in {vectors[0].path}",
        )
    (vector,) = vectors
    if vector.sequence_number < data_file.sequence_number:
        raise CorruptFileError(
            vector.path,
            f"the deletion vector of {data_file.path} has sequence number "
            f"{vector.sequence_number}, older than the file's {data_file.sequence_number}",
        )
    _check_partition(vector, data_file)
    return vector


def _of_this_file(named: list[DataFile], data_file: DataFile) -> Deletes:
    # The path identifies the file: the partition and spec of the delete do not matter.
    return tuple(each for each in named if each.sequence_number >= data_file.sequence_number)


def _check_partition(delete: DataFile, data_file: DataFile) -> None:
    if partition_of(delete) != partition_of(data_file):
        raise CorruptFileError(
            delete.path,
            f"deletes rows of {data_file.path} but is in partition {delete.partition} of spec "
            f"{delete.spec_id}, the file in {data_file.partition} of spec {data_file.spec_id}",
        )


class _ByPath:
    """Values by the path of a file, found by any spelling of it."""

    def __init__(self, same_file_key: Callable[[str], str]) -> None:
        self._key = same_file_key
        self._by_name: dict[str, dict[str, list[DataFile]]] = {}  # last part → path
        self._by_key: dict[str, dict[str, list[DataFile]]] = {}  # last part → key

    def __bool__(self) -> bool:
        return bool(self._by_name)

    def add(self, path: str, value: DataFile) -> None:
        """Add something to a path."""
        self._by_name.setdefault(last_part(path), {}).setdefault(path, []).append(value)

    def find(self, path: str) -> list[DataFile]:
        """The values of all spellings of ``path``, in the order in which they were added.

        All spellings of a path share its last part, so the key, which may query the file system, is
        computed only where another spelling with that last part exists.
        """
        name = last_part(path)
        spellings = self._by_name.get(name)
        if spellings is None:
            return []
        if len(spellings) == 1 and path in spellings:
            return spellings[path]
        keys = self._by_key.get(name)
        if keys is None:
            keys = self._by_key[name] = {}
            for spelling, values in spellings.items():
                keys.setdefault(self._key(spelling), []).extend(values)
        return keys.get(self._key(path), [])


def last_part(path: str) -> str:
    """The name of a file, which all spellings of its path share."""
    name = path.rpartition("/")[2]
    # An escape in a name is escaped again in a URI.
    while "%" in name and (plain := unquote(name)) != name:
        name = plain
    return name


class _BySequence:
    """Deletes in the order of their sequence numbers."""

    def __init__(self, deletes: list[DataFile]) -> None:
        deletes.sort(key=lambda delete: delete.sequence_number)
        self.deletes = tuple(map(without_metrics, deletes))
        self.sequence_numbers = [delete.sequence_number for delete in self.deletes]
        self._suffixes: dict[int, Deletes] = {0: self.deletes, len(self.deletes): ()}

    def not_older_than(self, sequence_number: int) -> Deletes:
        return self.suffix(bisect_left(self.sequence_numbers, sequence_number))

    def suffix(self, first: int) -> Deletes:
        # Every data file of one commit has the same deletes: one tuple serves them all.
        found = self._suffixes.get(first)
        if found is None:
            found = self._suffixes[first] = self.deletes[first:]
        return found


class _EqualityDeletes(_BySequence):
    """Equality deletes of one scope on one set of columns."""

    def __init__(
        self, equality_ids: tuple[int, ...], deletes: list[DataFile], overlap: Overlap | None
    ) -> None:
        super().__init__(deletes)
        self._columns = [] if overlap is None else overlap.columns_of(equality_ids, deletes)

    def newer_than(self, data_file: DataFile, facts: dict[int, ColumnFacts]) -> Deletes:
        first = bisect_right(self.sequence_numbers, data_file.sequence_number)
        kept: Sequence[int] = range(first, len(self.deletes))
        for column in self._columns if kept else ():
            of_file = facts.get(column.field_id)
            if of_file is None:
                of_file = facts[column.field_id] = column.facts_of(data_file)
            kept = column.overlapping(of_file, kept)
            if not kept:
                return ()
        if len(kept) == len(self.deletes) - first:
            return self.suffix(first)
        return tuple([self.deletes[index] for index in kept])
