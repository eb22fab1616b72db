"""The entries of a manifest as columns, with counts and bounds decoded only when asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Protocol

from msgspec import Struct, field

from icesql.iceberg.manifest.data_file import DataFile, FileContent

EXISTING: Final = 0
ADDED: Final = 1
DELETED: Final = 2
_LOOKED_UP: Final = ("_columns", "live", "unknown_counts")


class IntKeyedColumn(Protocol):
    """A column of maps from field id to a count or a bound; None for an entry without the map."""

    def values_of(self, field_id: int) -> list[Any]:
        """The value of one field in every entry, None where there is none."""
        ...

    def __getitem__(self, index: int) -> Mapping[int, Any] | None:
        """The whole map of one entry."""
        ...


class FilterColumns(Protocol):
    """The columns of a manifest that pruning uses: lists with one item for each entry."""

    @property
    def count(self) -> int:
        """The number of entries."""
        ...

    @property
    def live(self) -> list[bool]:
        """Whether each entry is part of the table."""
        ...

    @property
    def partition(self) -> list[tuple[Any, ...]]:
        """The partition of each file."""
        ...

    @property
    def record_count(self) -> list[int]:
        """The rows of each file."""
        ...

    @property
    def unknown_counts(self) -> Sequence[int]:
        """The entries of unknown record counts, those below 0."""
        ...

    def lower_bound(self, field_id: int) -> list[bytes | None]:
        """The lower bound of one column in every file."""
        ...

    def upper_bound(self, field_id: int) -> list[bytes | None]:
        """The upper bound of one column in every file."""
        ...

    def value_count(self, field_id: int) -> list[int | None]:
        """The number of values of one column in every file."""
        ...

    def null_value_count(self, field_id: int) -> list[int | None]:
        """The number of nulls of one column in every file."""
        ...

    def nan_value_count(self, field_id: int) -> list[int | None]:
        """The number of NaN of one column in every file."""
        ...

    @property
    def whole(self) -> ManifestEntries:
        """All entries with everything they say."""
        ...

    def narrowed_to(self, indexes: Sequence[int]) -> tuple[ManifestEntries, Sequence[int]]:
        """Entries with everything they say, and where in them those of ``indexes`` are."""
        ...


class PlainMaps(Struct, frozen=True):
    """A column of maps held as they are."""

    maps: Sequence[Mapping[int, Any] | None]

    def values_of(self, field_id: int) -> list[Any]:
        """The value of one field in every entry, None where there is none."""
        return [None if each is None else each.get(field_id) for each in self.maps]

    def __getitem__(self, index: int) -> Mapping[int, Any] | None:
        return self.maps[index]


class ManifestEntries(Struct, frozen=True, dict=True):
    """All entries of one manifest, inherited values filled in.

    Every list has ``count`` items, in file order. ``partition`` holds tuples in the internal form
    of ``iceberg.types``; bounds are raw bytes; DELETED entries are included. ``rare`` holds, by
    the name of the DataFile attribute, the values few entries have: index → value.
    """

    spec_id: int
    status: list[int]
    snapshot_id: list[int | None]
    sequence_number: list[int]
    file_sequence_number: list[int | None]
    content: list[int]
    path: list[str]
    file_format: list[str]
    partition: list[tuple[Any, ...]]
    record_count: list[int]
    file_size_in_bytes: list[int]
    maps: Mapping[str, IntKeyedColumn] = field(default_factory=dict)
    rare: Mapping[str, Mapping[int, Any]] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """The number of entries."""
        return len(self.status)

    def __len__(self) -> int:
        return len(self.status)

    @cached_property
    def live(self) -> list[bool]:
        """Whether each entry is part of the table, that is not DELETED."""
        return [status != DELETED for status in self.status]

    @cached_property
    def unknown_counts(self) -> Sequence[int]:
        """The entries of unknown record counts, those below 0."""
        return [index for index, count in enumerate(self.record_count) if count < 0]

    @property
    def whole(self) -> ManifestEntries:
        """These entries."""
        return self

    def narrowed_to(self, indexes: Sequence[int]) -> tuple[ManifestEntries, Sequence[int]]:
        """The entries themselves, which have everything."""
        return self, indexes

    def lower_bound(self, field_id: int) -> list[bytes | None]:
        """The lower bound of one column in every file."""
        return self._values_of("lower_bounds", field_id)

    def upper_bound(self, field_id: int) -> list[bytes | None]:
        """The upper bound of one column in every file."""
        return self._values_of("upper_bounds", field_id)

    def value_count(self, field_id: int) -> list[int | None]:
        """The number of values of one column in every file, nulls and NaN included."""
        return self._values_of("value_counts", field_id)

    def null_value_count(self, field_id: int) -> list[int | None]:
        """The number of nulls of one column in every file."""
        return self._values_of("null_value_counts", field_id)

    def nan_value_count(self, field_id: int) -> list[int | None]:
        """The number of NaN of one column in every file."""
        return self._values_of("nan_value_counts", field_id)

    def column_size(self, field_id: int) -> list[int | None]:
        """The stored bytes of one column in every file."""
        return self._values_of("column_sizes", field_id)

    @cached_property
    def _columns(self) -> dict[tuple[str, int], list[Any]]:
        return {}

    def _values_of(self, name: str, field_id: int) -> list[Any]:
        # Several leaves of a predicate ask for the same column, each of them for all entries.
        found = self._columns.get((name, field_id))
        if found is None:
            column = self.maps.get(name)
            found = [None] * self.count if column is None else column.values_of(field_id)
            self._columns[name, field_id] = found
        return found

    def data_file(self, index: int) -> DataFile:
        """The file of one entry, with everything the manifest says about it."""
        others: dict[str, Any] = {name: column[index] for name, column in self.maps.items()}
        others.update({name: each[index] for name, each in self.rare.items() if index in each})
        return DataFile(
            content=FileContent(self.content[index]),
            path=self.path[index],
            file_format=self.file_format[index],
            spec_id=self.spec_id,
            partition=self.partition[index],
            record_count=self.record_count[index],
            file_size_in_bytes=self.file_size_in_bytes[index],
            sequence_number=self.sequence_number[index],
            file_sequence_number=self.file_sequence_number[index],
            snapshot_id=self.snapshot_id[index],
            **others,
        )

    def __getstate__(self) -> dict[str, Any]:
        # What was looked up can be looked up again; it need not travel.
        return {k: v for k, v in self.__dict__.items() if k not in _LOOKED_UP}
