"""The temporary views and tables of a session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from icesql.errors import OperationalError, ProgrammingError, nearest
from icesql.frozen import Frozen

if TYPE_CHECKING:
    from icesql.iceberg.schema import Schema
    from icesql.sql.statement import Drop, Place, Query

SCHEMA = "temp"


class View(Frozen):
    """A view with its name and query; ``place`` is where its names are resolved.

    ``columns`` rename its first columns. ``dialect`` is the dialect from which its SQL was
    translated, None without translation. ``schema`` is the schema in the catalog;
    ``before`` and ``after`` are SQL around the query.
    """

    name: str
    query: Query
    columns: tuple[str, ...]
    place: Place
    dialect: str | None = None
    schema: Schema | None = None
    before: str = ""
    after: str = ""

    kind = "view"


class TemporaryTable(Frozen):
    """A table in memory: ``data`` is an Arrow table of ``size`` bytes.

    ``columns`` are names, types as in DESCRIBE, and the engine's types.
    """

    name: str
    columns: tuple[tuple[str, str, str], ...]
    data: Any
    size: int

    kind = "table"


class SparkFrame(TemporaryTable):
    """A DataFrame of Spark under a name: ``data`` is the DataFrame, whose rows stay in Spark.

    ``schema`` has its columns, in order, under unique names.
    """

    schema: Schema


class Temporary:
    """Views and tables by name, in one space as in DuckDB; case is ignored."""

    def __init__(self) -> None:
        self._made: dict[str, View | TemporaryTable] = {}

    def __bool__(self) -> bool:
        return bool(self._made)

    @property
    def all(self) -> list[View | TemporaryTable]:
        """All views and tables, ordered by name."""
        return [each for _, each in sorted(self._made.items())]

    def find(self, parts: Sequence[str]) -> View | TemporaryTable | None:
        """The temporary object named ``v`` or ``temp.v``, else None."""
        if len(parts) == 2 and parts[0].lower() == SCHEMA:
            parts = parts[1:]
        return self._made.get(parts[0].lower()) if len(parts) == 1 else None

    def check(self, name: str, kind: str, *, replace: bool, if_missing: bool) -> bool:
        """Whether an object is to be created; False if it exists and that is allowed.

        Raises ProgrammingError if the name is taken.
        """
        found = self._made.get(name.lower())
        if found is None:
            return True
        if found.kind != kind:
            raise ProgrammingError(f'"{name}" is a temporary {found.kind}; drop it first')
        if not replace and not if_missing:
            hint = f"CREATE OR REPLACE TEMP {kind.upper()} replaces it"
            raise ProgrammingError(f'the temporary {kind} "{name}" exists; {hint}')
        return replace

    def keep(self, made: View | TemporaryTable) -> None:
        """Store a view or table, replacing the one with the same name."""
        self._made[made.name.lower()] = made

    def drop(self, statement: Drop) -> None:
        """Remove an object. Raises ProgrammingError if none has this name and kind."""
        kind, name = statement.kind.lower(), statement.name
        found = self._made.get(name.lower())
        if found is None:
            if statement.if_exists:
                return
            hint = nearest(name, [each.name for each in self.all])
            raise ProgrammingError(f'no temporary {kind} "{name}"{hint}')
        if found.kind != kind:
            raise ProgrammingError(
                f'"{name}" is a temporary {found.kind}; DROP {found.kind.upper()} {name} drops it'
            )
        del self._made[name.lower()]

    def forget(self, name: str) -> None:
        """Remove an object if it exists."""
        self._made.pop(name.lower(), None)

    def check_room(self, size: int, limit: int, without: str) -> None:
        """Raise OperationalError if ``size`` more bytes exceed the limit for all tables.

        ``without`` is the name of the table that would be replaced.
        """
        held = sum(
            each.size
            for name, each in self._made.items()
            if isinstance(each, TemporaryTable) and name != without.lower()
        )
        if held + size > limit:
            raise OperationalError(
                f"the temporary tables would hold {held + size:,} bytes, more than memory_limit "
                f"({limit:,}); drop one, keep fewer rows, or SET memory_limit"
            )
