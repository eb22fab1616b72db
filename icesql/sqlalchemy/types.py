"""Maps Iceberg's types, in the spelling of DESCRIBE, to SQLAlchemy's."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import types

from icesql.quoting import literal

# JSON in text columns: Iceberg has no JSON type; the engine extracts values by path.


class _Path:
    """A bound value that is rendered as a JSON path, also as a literal."""

    def bind_processor(self, dialect: Any) -> Callable[[Any], Any]:
        """The path as text."""
        return self._path

    def literal_processor(self, dialect: Any) -> Callable[[Any], str]:
        """The path as a literal."""
        return lambda value: literal(self._path(value))

    def _path(self, value: Any) -> str:
        return "$" + _step(value)


class IcesqlJSONIndex(_Path, types.JSON.JSONIndexType):
    """``column["key"]`` and ``column[0]``."""


class IcesqlJSONPath(_Path, types.JSON.JSONPathType):
    """``column[("key", 0)]``."""

    def _path(self, value: Sequence[Any]) -> str:
        return "$" + "".join(map(_step, value))


def _step(value: Any) -> str:
    return f"[{value}]" if isinstance(value, int) else f".{json.dumps(value, ensure_ascii=False)}"


if TYPE_CHECKING:
    _UserDefinedType = types.UserDefinedType[Any]
    _Numeric = types.Numeric[Any]
else:  # SQLAlchemy 1.4, which Superset still requires, has no type parameters
    _UserDefinedType, _Numeric = types.UserDefinedType, types.Numeric


class IcebergType(_UserDefinedType):
    """A type without a SQLAlchemy equivalent, such as a struct or map; ``text`` is its spelling."""

    cache_ok = True

    def __init__(self, text: str) -> None:
        self.text = text

    def get_col_spec(self, **_: Any) -> str:
        """The type in icesql's spelling."""
        return self.text


_SIMPLE: Final[Mapping[str, Callable[[], types.TypeEngine[Any]]]] = {
    "boolean": types.BOOLEAN,
    "int": types.INTEGER,
    "long": types.BIGINT,
    "float": types.REAL,
    "double": types.DOUBLE if hasattr(types, "DOUBLE") else types.FLOAT,
    "string": types.VARCHAR,
    "uuid": types.UUID if hasattr(types, "UUID") else lambda: IcebergType("UUID"),
    "binary": types.BLOB,
    "date": types.DATE,
    "time": types.TIME,
    "timestamp": types.TIMESTAMP,
    "timestamp_ns": types.TIMESTAMP,
    "timestamptz": lambda: types.TIMESTAMP(timezone=True),
    "timestamptz_ns": lambda: types.TIMESTAMP(timezone=True),
}
_DECIMAL: Final = re.compile(r"decimal\((\d+), ?(\d+)\)")


class IcesqlNumeric(_Numeric):
    """Numeric that also converts floating-point results of the engine, as of divisions."""

    cache_ok = True

    def result_processor(self, dialect: Any, coltype: object) -> Callable[[Any], Any] | None:
        """Converts to Decimal or float, by the type's ``asdecimal``."""
        if not self.asdecimal:
            return lambda value: None if value is None else float(value)
        return lambda value: Decimal(repr(value)) if isinstance(value, float) else value


# types.Float is listed so that it keeps its class: as a subclass of Numeric it would be replaced.
COLSPECS: Final = {
    types.Numeric: IcesqlNumeric,
    types.Float: types.Float,
    types.JSON.JSONIndexType: IcesqlJSONIndex,
    types.JSON.JSONPathType: IcesqlJSONPath,
}


def type_of(text: str) -> types.TypeEngine[Any]:
    """The SQLAlchemy type for ``text``, a type in the spelling of DESCRIBE."""
    if (simple := _SIMPLE.get(text)) is not None:
        return simple()
    if (decimal := _DECIMAL.fullmatch(text)) is not None:
        return types.DECIMAL(int(decimal[1]), int(decimal[2]))
    if text.startswith("fixed["):
        return types.BLOB()
    if text.startswith("list<") and text.endswith(">"):
        inner = type_of(text[5:-1])
        # SQLAlchemy represents nested arrays as one type with a number of dimensions.
        if isinstance(inner, types.ARRAY):
            return types.ARRAY(inner.item_type, dimensions=(inner.dimensions or 1) + 1)
        return types.ARRAY(inner, dimensions=1)
    return IcebergType(text)
