"""Name mapping: field ids for data files that were written without any.

Source: Iceberg spec, "Column Projection" and "Name Mapping Serialization".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from icesql.errors import CorruptFileError
from icesql.frozen import Frozen
from icesql.iceberg.metadata.json_fields import (
    Malformed,
    as_list,
    as_object,
    as_text,
    load_json,
    optional_int,
)

PROPERTY: Final = "schema.name-mapping.default"
_DEEPEST: Final = 100


class MappedField(Frozen):
    """One field and all names it ever had; ``field_id`` None: ignore such columns."""

    field_id: int | None
    names: tuple[str, ...]
    fields: tuple[MappedField, ...] = ()


class NameMapping(Frozen):
    """The mapping of a table; immutable and picklable."""

    fields: tuple[MappedField, ...] = ()

    @property
    def field_ids(self) -> frozenset[int]:
        """Every id that the mapping has a name for, at any depth."""

        def ids(fields: Iterable[MappedField]) -> Iterator[int]:
            for each in fields:
                if each.field_id is not None:
                    yield each.field_id
                yield from ids(each.fields)

        return frozenset(ids(self.fields))

    def holds(self, other: NameMapping) -> bool:
        """Whether every name of another mapping has the same id in this one."""

        def held(own: Iterable[MappedField], others: Iterable[MappedField]) -> bool:
            by_name = {name: each for each in own for name in each.names}
            return all(
                name in by_name
                and by_name[name].field_id == each.field_id
                and held(by_name[name].fields, each.fields)
                for each in others
                for name in each.names
            )

        return held(self.fields, other.fields)

    def find(self, path: tuple[str, ...]) -> int | None:
        """The id of the field at ``path``, None when the mapping has none for it.

        ``path`` holds one name per level, taken literally (dots are part of a name); the levels
        of a list are called "element", those of a map "key" and "value".
        """
        level = self.fields
        found: MappedField | None = None
        for name in path:
            found = next((each for each in level if name in each.names), None)
            if found is None:
                return None
            level = found.fields
        return None if found is None else found.field_id


def parse_name_mapping(text: str) -> NameMapping:
    """The mapping that the JSON text of a table property spells.

    Raises CorruptFileError for anything else, a name used twice on one level included.
    """
    try:
        json = load_json(text)
        if isinstance(json, dict) and json.get("type") == "struct":
            json = json.get("fields")  # some writers wrap the list as a schema does
        return NameMapping(_parse_level(json, 0))
    except Malformed as error:
        raise CorruptFileError(f"table property {PROPERTY}", str(error)) from error


def _parse_level(value: Any, depth: int) -> tuple[MappedField, ...]:
    if depth > _DEEPEST:
        raise Malformed("name mapping nested too deeply")
    fields = tuple(
        _parse_field(as_object(each, "name mapping entry"), depth)
        for each in as_list(value, "name mapping")
    )
    _check_distinct(fields)
    return fields


def _parse_field(entry: Mapping[str, Any], depth: int) -> MappedField:
    names = as_list(entry.get("names", []), "name mapping names")
    nested = entry.get("fields")
    return MappedField(
        optional_int(entry, "field-id", "name mapping", 32),
        tuple(as_text(name, "name mapping name") for name in names),
        () if nested is None else _parse_level(nested, depth + 1),
    )


def _check_distinct(fields: Iterable[MappedField]) -> None:
    seen: set[str] = set()
    for each in fields:
        for name in set(each.names):
            if name in seen:
                raise Malformed(f"name {name!r} is mapped twice")
            seen.add(name)
