"""dbt's column interface, with types in icesql's spelling."""

from dataclasses import dataclass
from typing import ClassVar, Final

from dbt.adapters.base.column import Column

from icesql.quoting import quoted

_INTEGERS: Final = frozenset(["tinyint", "smallint", "integer", "int", "bigint", "hugeint"])
_FLOATS: Final = frozenset(["float", "real", "double"])


@dataclass
class IcesqlColumn(Column):
    """A name and a type such as ``decimal(9,2)``; text types have no length."""

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
        """The type in the spelling of CAST."""
        return str(self.dtype)

    def is_string(self) -> bool:
        """True for text types."""
        return self.dtype.lower() in ("varchar", "text", "string")

    def is_integer(self) -> bool:
        """True for integer types."""
        return self.dtype.lower() in _INTEGERS

    def is_float(self) -> bool:
        """True for floating-point types."""
        return self.dtype.lower() in _FLOATS

    def is_numeric(self) -> bool:
        """True for decimals."""
        return str(self.dtype).lower().startswith("decimal")

    def string_size(self) -> int:
        """The same for all text columns, so that dbt widens none."""
        return 256
