"""A column as dbt asks about it, with its type in icesql's spelling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from dbt.adapters.base.column import Column

from icesql.dbt.names import quoted

_INTEGERS: Final = frozenset(["tinyint", "smallint", "integer", "int", "bigint", "hugeint"])
_FLOATS: Final = frozenset(["float", "real", "double"])


@dataclass
class IcesqlColumn(Column):
    """A name and a type such as ``decimal(9,2)``; nothing has a length of text."""

    TYPE_LABELS: ClassVar[dict[str, str]] = {
        "STRING": "varchar",
        "TEXT": "varchar",
        "TIMESTAMP": "timestamp",
        "FLOAT": "double",
        "INTEGER": "integer",
        "NUMERIC": "decimal(28,6)",
        "BOOLEAN": "boolean",
        "BIGINT": "bigint",
    }

    @property
    def quoted(self) -> str:
        """The name in double quotes."""
        return quoted(self.column)

    @property
    def data_type(self) -> str:
        """The type as CAST takes it."""
        return str(self.dtype)

    def is_string(self) -> bool:
        """Whether it is text."""
        return self.dtype.lower() in ("varchar", "text", "string")

    def is_integer(self) -> bool:
        """Whether it is a whole number."""
        return self.dtype.lower() in _INTEGERS

    def is_float(self) -> bool:
        """Whether it is a binary fraction."""
        return self.dtype.lower() in _FLOATS

    def is_numeric(self) -> bool:
        """Whether it is a decimal."""
        return str(self.dtype).lower().startswith("decimal")

    def string_size(self) -> int:
        """Of all texts alike, so that dbt widens none."""
        return 256

    @classmethod
    def numeric_type(cls, dtype: str, precision: object, scale: object) -> str:
        """``decimal(9,2)``."""
        if precision is None or scale is None:
            return dtype
        return f"{dtype}({precision},{scale})"
