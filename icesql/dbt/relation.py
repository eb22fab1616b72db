"""dbt's tables, views and columns: names, optionally at a version or a time, and types."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Optional

from dbt.adapters.base.column import Column
from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.contracts.relation import ComponentName, RelationType

from icesql.quoting import literal, quoted

# dbt evaluates these annotations at run time, so they are not postponed.


@dataclass(frozen=True, eq=False, repr=False)
class IcesqlRelation(BaseRelation):
    """``"namespace"."table"``, prefixed with the catalog if it is not the connection's own.

    A schema of several parts, such as ``a.b``, is a nested namespace.
    """

    # dbt's name for the connection's own catalog; the adapter sets it when it is created.
    own_database: ClassVar[str] = "default"

    require_alias: bool = False
    version: Optional[str] = None
    as_of: Optional[str] = None
    renameable_relations: Any = frozenset({RelationType.Table, RelationType.View})
    replaceable_relations: Any = renameable_relations

    def at(self, version: Any = None, timestamp: Any = None) -> "IcesqlRelation":
        """The relation at a version or a time: ``ref('orders').at(version='audit')``.

        ``version`` is a snapshot id, branch or tag; ``timestamp`` is a text for ``TIMESTAMP AS
        OF``. The CTE that replaces a relation in a unit test is returned unchanged. Raises
        ValueError for both.
        """
        if version is not None and timestamp is not None:
            raise ValueError(f"{self.render()}: give a version or a timestamp, not both")
        if self.type == RelationType.CTE:
            return self
        made: IcesqlRelation = self.replace(
            version=None if version is None else str(version),
            as_of=None if timestamp is None else str(timestamp),
        )
        return made

    @property
    def other_catalog(self) -> Optional[str]:
        """The catalog if it is not the connection's own, else None."""
        name = self.path.database
        return name if name and name.lower() != self.own_database.lower() else None

    def quoted(self, identifier: str) -> str:
        """A name in double quotes."""
        return quoted(identifier)

    def _render_iterator(self) -> Iterator[tuple[Optional[ComponentName], Optional[str]]]:
        for key, part in super()._render_iterator():
            name = self.path.schema
            if key == ComponentName.Database and self.other_catalog is None:
                yield key, None
            elif key == ComponentName.Schema and part is not None and name and "." in name:
                # Each part is quoted as a name of its own.
                yield key, ".".join(quoted(each) for each in name.split("."))
            else:
                yield key, part

    def render(self) -> str:
        """The name in SQL, with the version or time to read."""
        text: str = super().render()
        if self.version is not None:
            is_id = self.version.lstrip("-").isdigit()
            return f"{text} VERSION AS OF {self.version if is_id else literal(self.version)}"
        if self.as_of is not None:
            return f"{text} TIMESTAMP AS OF {literal(self.as_of)}"
        return text


# ------------------------------------------------------------------ columns


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
