"""What SQL text becomes: one frozen value per statement that icesql accepts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from icesql.sql.time_travel import TimeTravel

if TYPE_CHECKING:
    from sqlglot import exp


@dataclass(frozen=True, slots=True)
class TableReference:
    """One place where a statement names an Iceberg table; ``"__scan_<index>"`` in its tree.

    ``parts`` are the names as written (``a.b.c`` → 3). ``path`` is set for
    ``iceberg_scan('path')`` alone, whose ``parts`` is the last piece of the path.
    ``line`` and ``column`` count from 1.
    """

    index: int
    parts: tuple[str, ...]
    path: str | None = None
    travel: TimeTravel | None = None
    line: int | None = None
    column: int | None = None

    @property
    def name(self) -> str:
        """The name as messages show it: the path, or the parts joined by dots."""
        return self.path if self.path is not None else ".".join(self.parts)


@dataclass(frozen=True, slots=True)
class FileReference:
    """Files as one table: the function that reads them, paths or globs, and its options in SQL."""

    index: int
    function: str
    paths: tuple[str, ...]
    options: tuple[tuple[str, str], ...] = ()
    line: int | None = None
    column: int | None = None

    @property
    def name(self) -> str:
        """What the tree calls it."""
        return f"__file_{self.index}"


@dataclass(frozen=True, slots=True)
class Query:
    """A SELECT, set operation, WITH or VALUES.

    Every Iceberg table in ``tree`` is a Table named ``"__scan_<i>"`` with an alias and stands
    at ``references[i]``, likewise ``"__file_<i>"`` in ``files``; parameters are literal or cast
    nodes. ``text`` is the source.
    """

    tree: exp.Expression
    references: tuple[TableReference, ...]
    text: str = ""
    files: tuple[FileReference, ...] = ()


@dataclass(frozen=True, slots=True)
class Explain:
    """EXPLAIN [ANALYZE] of a query; ``format`` is "text" or "json"."""

    query: Query
    analyze: bool = False
    format: str = "text"


@dataclass(frozen=True, slots=True)
class SetSetting:
    """SET name = value; the value as text, unquoted."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class ResetSetting:
    """RESET name; None for RESET ALL."""

    name: str | None


@dataclass(frozen=True, slots=True)
class ShowTables:
    """SHOW TABLES [FROM namespace] [LIKE pattern]; None is the current namespace."""

    namespace: tuple[str, ...] | None = None
    like: str | None = None


@dataclass(frozen=True, slots=True)
class ShowNamespaces:
    """SHOW SCHEMAS, NAMESPACES or DATABASES [FROM parent] [LIKE pattern]."""

    parent: tuple[str, ...] | None = None
    like: str | None = None


@dataclass(frozen=True, slots=True)
class ShowSnapshots:
    """SHOW SNAPSHOTS [FROM] table."""

    reference: TableReference


@dataclass(frozen=True, slots=True)
class ShowRefs:
    """SHOW REFS [FROM] table: its branches and tags."""

    reference: TableReference


@dataclass(frozen=True, slots=True)
class Describe:
    """DESCRIBE table, possibly at a snapshot."""

    reference: TableReference


@dataclass(frozen=True, slots=True)
class Use:
    """USE namespace."""

    parts: tuple[str, ...]


Statement = (
    Query
    | Explain
    | SetSetting
    | ResetSetting
    | ShowTables
    | ShowNamespaces
    | ShowSnapshots
    | ShowRefs
    | Describe
    | Use
)
