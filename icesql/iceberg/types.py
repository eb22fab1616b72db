"""Iceberg types as frozen values, and their JSON form.

Values of these types travel through icesql in one internal form, used by literals, bounds and
partition tuples alike:

    boolean bool · int, long int · float, double float · decimal Decimal (scale of the type)
    date int days · time int µs · timestamp, timestamptz int µs · *_ns int ns since 1970 (UTC)
    string str · uuid bytes (16) · fixed, binary bytes

Source: Iceberg spec, "Schemas and Data Types".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from icesql.frozen import Frozen


class _Missing:
    """Marks a field without a default, which differs from a default of NULL."""

    def __repr__(self) -> str:
        return "MISSING"

    def __reduce__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()


class IcebergType(Frozen):
    """Base of all types."""

    def __str__(self) -> str:
        return _PRIMITIVE_NAMES[type(self)]


class PrimitiveType(IcebergType):
    """Base of the types without children."""


class BooleanType(PrimitiveType):
    pass


class IntegerType(PrimitiveType):
    pass


class LongType(PrimitiveType):
    pass


class FloatType(PrimitiveType):
    pass


class DoubleType(PrimitiveType):
    pass


class DateType(PrimitiveType):
    pass


class TimeType(PrimitiveType):
    pass


class AnyTimestamp(PrimitiveType):
    """Base of the timestamps."""


class TimestampType(AnyTimestamp):
    pass


class TimestamptzType(AnyTimestamp):
    pass


class TimestampNanoType(AnyTimestamp):
    pass


class TimestamptzNanoType(AnyTimestamp):
    pass


class StringType(PrimitiveType):
    pass


class UUIDType(PrimitiveType):
    pass


class BinaryType(PrimitiveType):
    pass


class VariantType(PrimitiveType):
    """``binary``: readers give its bytes as files hold them, for writers; else its JSON text."""

    binary: bool = False


class UnknownType(PrimitiveType):
    """Always NULL and never stored; also the type of what this version does not know."""


class DecimalType(PrimitiveType):
    precision: int
    scale: int

    def __str__(self) -> str:
        return f"decimal({self.precision}, {self.scale})"


class FixedType(PrimitiveType):
    length: int

    def __str__(self) -> str:
        return f"fixed[{self.length}]"


class GeometryType(PrimitiveType):
    crs: str = "OGC:CRS84"

    def __str__(self) -> str:
        return "geometry" if self.crs == "OGC:CRS84" else f"geometry({self.crs})"


class GeographyType(PrimitiveType):
    crs: str = "OGC:CRS84"
    algorithm: str = "spherical"

    def __str__(self) -> str:
        if self.crs == "OGC:CRS84" and self.algorithm == "spherical":
            return "geography"
        return f"geography({self.crs}, {self.algorithm})"


class NestedField(Frozen):
    """A column, a struct child, a list element or a map key or value.

    ``initial_default`` and ``write_default`` are in the internal form of the module docstring
    (struct defaults: dict by field id), MISSING when the field has none.
    """

    field_id: int
    name: str
    type: IcebergType
    required: bool = False
    doc: str | None = None
    initial_default: Any = MISSING
    write_default: Any = MISSING

    @property
    def written_default(self) -> Any:
        """The value of the field where a writer gives none: its write default, or None."""
        return None if self.write_default is MISSING else self.write_default

    def __str__(self) -> str:
        need = "required" if self.required else "optional"
        return f"{self.field_id}: {self.name}: {need} {self.type}"


class StructType(IcebergType):
    fields: tuple[NestedField, ...] = ()

    def __str__(self) -> str:
        return f"struct<{', '.join(map(str, self.fields))}>"


class ListType(IcebergType):
    element_id: int
    element: IcebergType
    element_required: bool = False

    @property
    def element_field(self) -> NestedField:
        """The element as a field."""
        return NestedField(self.element_id, "element", self.element, self.element_required)

    def __str__(self) -> str:
        return f"list<{self.element}>"


class MapType(IcebergType):
    key_id: int
    key: IcebergType
    value_id: int
    value: IcebergType
    value_required: bool = False

    @property
    def key_field(self) -> NestedField:
        """The key as a field; keys are never NULL."""
        return NestedField(self.key_id, "key", self.key, required=True)

    @property
    def value_field(self) -> NestedField:
        """The value as a field."""
        return NestedField(self.value_id, "value", self.value, self.value_required)

    def __str__(self) -> str:
        return f"map<{self.key}, {self.value}>"


# Types whose values SQL and bounds order alike, with equal values that are the same: no NaN, no
# zeros of two signs, and not Java's order of UUIDs.
ORDERED: Final = (IntegerType, LongType, DateType, TimeType, AnyTimestamp, DecimalType, StringType)

BOOLEAN: Final = BooleanType()
INTEGER: Final = IntegerType()
LONG: Final = LongType()
FLOAT: Final = FloatType()
DOUBLE: Final = DoubleType()
DATE: Final = DateType()
TIME: Final = TimeType()
TIMESTAMP: Final = TimestampType()
TIMESTAMPTZ: Final = TimestamptzType()
TIMESTAMP_NS: Final = TimestampNanoType()
TIMESTAMPTZ_NS: Final = TimestamptzNanoType()
STRING: Final = StringType()
UUID: Final = UUIDType()
BINARY: Final = BinaryType()
VARIANT: Final = VariantType()
UNKNOWN: Final = UnknownType()

_PRIMITIVES: Final[dict[str, PrimitiveType]] = {
    "boolean": BOOLEAN,
    "int": INTEGER,
    "long": LONG,
    "float": FLOAT,
    "double": DOUBLE,
    "date": DATE,
    "time": TIME,
    "timestamp": TIMESTAMP,
    "timestamptz": TIMESTAMPTZ,
    "timestamp_ns": TIMESTAMP_NS,
    "timestamptz_ns": TIMESTAMPTZ_NS,
    "string": STRING,
    "uuid": UUID,
    "binary": BINARY,
    "variant": VARIANT,
    "unknown": UNKNOWN,
}
_PRIMITIVE_NAMES: Final[dict[type[IcebergType], str]] = {
    type(value): name for name, value in _PRIMITIVES.items()
}
_DECIMAL: Final = r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)"
_LONGEST_FIXED: Final = (1 << 31) - 1
_FIXED: Final = r"fixed\[\s*(\d+)\s*\]"
_GEOMETRY: Final = r"geometry(?:\(\s*(.+?)\s*\))?"
_GEOGRAPHY: Final = r"geography(?:\(\s*([^,]+?)\s*(?:,\s*(\w+)\s*)?\))?"


def parse_primitive(text: str) -> PrimitiveType:
    """The type that ``text`` names in metadata JSON. Raises ValueError for an unknown name."""
    known = _PRIMITIVES.get(text.lower())
    if known is not None:
        return known
    if found := re.fullmatch(_DECIMAL, text):
        return DecimalType(int(found[1]), int(found[2]))
    if found := re.fullmatch(_FIXED, text):
        length = int(found[1])
        if length > _LONGEST_FIXED:
            raise ValueError(f"fixed of {length} bytes, more than {_LONGEST_FIXED}")
        return FixedType(length)
    if found := re.fullmatch(_GEOMETRY, text):
        return GeometryType(found[1] or "OGC:CRS84")
    if found := re.fullmatch(_GEOGRAPHY, text):
        return GeographyType(found[1] or "OGC:CRS84", (found[2] or "spherical").lower())
    raise ValueError(f"unknown type {text!r}")


def children(node: IcebergType) -> tuple[NestedField, ...]:
    """The direct child fields of a type; empty for primitives."""
    match node:
        case StructType(fields):
            return fields
        case ListType():
            return (node.element_field,)
        case MapType():
            return (node.key_field, node.value_field)
        case _:
            return ()


def with_children(node: IcebergType, fields: Sequence[NestedField]) -> IcebergType:
    """The type with other child fields, as ``children`` returns them."""
    match node, fields:
        case StructType(), _:
            return StructType(tuple(fields))
        case ListType(), [element]:
            return ListType(element.field_id, element.type, element.required)
        case MapType(), [key, value]:
            return MapType(key.field_id, key.type, value.field_id, value.type, value.required)
        case _:
            return node


def walk(fields: tuple[NestedField, ...]) -> Iterator[NestedField]:
    """Every field below ``fields``, parents before children."""
    for child in fields:
        yield child
        yield from walk(children(child.type))


def leaf_ids(fields: tuple[NestedField, ...]) -> tuple[int, ...]:
    """Ids of the primitive fields below ``fields``, which are the columns of a file."""
    return tuple(each.field_id for each in walk(fields) if isinstance(each.type, PrimitiveType))


def is_floating(node: IcebergType) -> bool:
    """Whether values of this type can be NaN."""
    return isinstance(node, FloatType | DoubleType)
