"""A table schema: fields with ids, looked up by id or by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

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
