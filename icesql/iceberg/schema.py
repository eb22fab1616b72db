"""A table schema: fields with ids, looked up by id or by name; and the metadata columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final

from msgspec.structs import replace

from icesql.errors import AmbiguousColumnError, ColumnNotFoundError, similar_names
from icesql.frozen import Frozen
from icesql.iceberg import types as t


def fields_named(name: str, fields: Sequence[t.NestedField]) -> list[t.NestedField]:
    """The fields of a name; those in another case only if there are no others."""
    return [each for each in fields if each.name == name] or [
        each for each in fields if each.name.lower() == name.lower()
    ]


class Schema(Frozen, dict=True):
    """The columns of a table at one time, in order; immutable and picklable."""

    fields: tuple[t.NestedField, ...]
    schema_id: int = 0
    identifier_field_ids: tuple[int, ...] = ()

    @property
    def struct(self) -> t.StructType:
        """The columns as one struct type."""
        return t.StructType(self.fields)

    @cached_property
    def field_by_id(self) -> Mapping[int, t.NestedField]:
        """Every field at any depth by its id."""
        return {child.field_id: child for child in t.walk(self.fields)}

    @cached_property
    def parent_by_id(self) -> Mapping[int, int]:
        """Field id → id of the field that holds it; top-level columns are absent."""
        return {
            child.field_id: parent.field_id
            for parent in t.walk(self.fields)
            for child in t.children(parent.type)
        }

    @cached_property
    def name_by_id(self) -> Mapping[int, str]:
        """Field id → full dotted name ("a.b"; "l.element" in lists, "m.key", "m.value" in maps)."""
        names: dict[int, str] = {}

        def visit(fields: Iterable[t.NestedField], prefix: str) -> None:
            for child in fields:
                names[child.field_id] = prefix + child.name
                visit(t.children(child.type), f"{prefix}{child.name}.")

        visit(self.fields, "")
        return names

    @cached_property
    def _ids_by_name(self) -> Mapping[str, int]:
        # A top-level column called "a.b" wins over child b of a: it is the shorter path.
        names = {name: each for each, name in reversed(list(self.name_by_id.items()))}
        for column in self.fields:
            names[column.name] = column.field_id
        return names

    @cached_property
    def _ids_by_lower_name(self) -> Mapping[str, tuple[int, ...]]:
        ids: dict[str, tuple[int, ...]] = {}
        for name, field_id in self._ids_by_name.items():
            ids[name.lower()] = (*ids.get(name.lower(), ()), field_id)
        return ids

    @cached_property
    def _columns_by_lower_name(self) -> Mapping[str, list[t.NestedField]]:
        columns: dict[str, list[t.NestedField]] = {}
        for column in self.fields:
            columns.setdefault(column.name.lower(), []).append(column)
        return columns

    def find_field(self, name: str, *, case_sensitive: bool = True) -> t.NestedField:
        """The field of a full dotted name.

        Raises ColumnNotFoundError with the nearest names, AmbiguousColumnError when several
        fields have the name up to case.
        """
        exact = self._ids_by_name.get(name)
        if exact is not None:
            return self.field_by_id[exact]
        if not case_sensitive:
            ids = self._ids_by_lower_name.get(name.lower(), ())
            if len(ids) > 1:
                raise AmbiguousColumnError(name, candidates=[self.name_by_id[i] for i in ids])
            if ids:
                return self.field_by_id[ids[0]]
        raise ColumnNotFoundError(name, similar=similar_names(name, self._ids_by_name))

    def find_column(self, name: str) -> t.NestedField | None:
        """The top-level column of that name, None if there is none; exact spelling first."""
        matches = self._columns_by_lower_name.get(name.lower(), [])
        matches = [column for column in matches if column.name == name] or matches
        if len(matches) > 1:
            raise AmbiguousColumnError(name, candidates=[column.name for column in matches])
        return matches[0] if matches else None

    def ancestors(self, field_id: int) -> tuple[t.NestedField, ...]:
        """The fields around a field, nearest first."""
        found = []
        parent = self.parent_by_id.get(field_id)
        while parent is not None:
            found.append(self.field_by_id[parent])
            parent = self.parent_by_id.get(parent)
        return tuple(found)

    def inside_repeated(self, field_id: int) -> bool:
        """Whether a field lies inside a list or a map, where it has no metrics."""
        return any(isinstance(a.type, t.ListType | t.MapType) for a in self.ancestors(field_id))

    def always_present(self, field_id: int) -> bool:
        """Whether the field and every struct around it are required, so it is never NULL."""
        return self.field_by_id[field_id].required and all(
            ancestor.required for ancestor in self.ancestors(field_id)
        )

    def select(self, field_ids: Iterable[int]) -> Schema:
        """The top-level columns with these ids, whole, in the order given."""
        columns = {column.field_id: column for column in self.fields}
        return replace(self, fields=tuple(columns[field_id] for field_id in field_ids))

    def type_of(self, field_id: int) -> t.IcebergType:
        """The type of the field at any depth. Raises KeyError for an unknown id."""
        return self.field_by_id[field_id].type

    def __str__(self) -> str:
        return "\n".join(str(column) for column in self.fields)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.fields, self.schema_id, self.identifier_field_ids)


# ------------------------------------------------------------------ metadata columns
# Source: Iceberg spec, "Reserved Field IDs". ``_snapshot_id`` is icesql's own: the snapshot that
# added the file; its id lies in the reserved range and is not used by the spec.


FILE: Final = t.NestedField(2147483646, "_file", t.STRING, required=True)
POS: Final = t.NestedField(2147483645, "_pos", t.LONG, required=True)
DELETED: Final = t.NestedField(2147483644, "_deleted", t.BOOLEAN, required=True)
SPEC_ID: Final = t.NestedField(2147483643, "_spec_id", t.INTEGER, required=True)
PARTITION_ID: Final = 2147483642
ROW_ID: Final = t.NestedField(2147483540, "_row_id", t.LONG)
LAST_UPDATED_SEQUENCE_NUMBER: Final = t.NestedField(
    2147483539, "_last_updated_sequence_number", t.LONG
)
SNAPSHOT_ID: Final = t.NestedField(2147483500, "_snapshot_id", t.LONG)
# Files may store them; otherwise they are derived from the file.
LINEAGE: Final = (ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER)
LINEAGE_IDS: Final = frozenset(each.field_id for each in LINEAGE)  # a query may rename them

# The kind of change, in the rows of a change. The spec reserves the first two ids, under other
# names for the second; the time is icesql's own.
CHANGE_COLUMNS: Final = (
    t.NestedField(2147483543, "_change_type", t.STRING, required=True),
    t.NestedField(2147483541, "_commit_version", t.LONG, required=True),
    t.NestedField(2147483499, "_commit_timestamp", t.TIMESTAMPTZ, required=True),
)

# Who made the commit, in the rows of BLAME; all are icesql's own.
BLAME_COLUMNS: Final = (
    t.NestedField(2147483498, "_operation", t.STRING),
    t.NestedField(2147483497, "_engine", t.STRING),
    t.NestedField(2147483496, "_job", t.STRING),
)

DELETE_FILE_PATH: Final = t.NestedField(2147483546, "file_path", t.STRING, required=True)
DELETE_POS: Final = t.NestedField(2147483545, "pos", t.LONG, required=True)

CONSTANT_OR_POSITIONAL: Final = (
    FILE,
    POS,
    DELETED,
    SPEC_ID,
    ROW_ID,
    LAST_UPDATED_SEQUENCE_NUMBER,
    SNAPSHOT_ID,
)
METADATA_COLUMNS: Final = {column.name: column for column in CONSTANT_OR_POSITIONAL}
RESERVED_NAMES: Final = frozenset(
    {*METADATA_COLUMNS, *(each.name for each in CHANGE_COLUMNS), "_partition", "_change_ordinal",
     "_commit_snapshot_id"}
)  # fmt: skip
METADATA_IDS: Final = frozenset({*(c.field_id for c in CONSTANT_OR_POSITIONAL), PARTITION_ID})


def partition_column(partition_type: t.StructType) -> t.NestedField:
    """The ``_partition`` column; its struct unites the partition fields of all specs."""
    return t.NestedField(PARTITION_ID, "_partition", partition_type)
