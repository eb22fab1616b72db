"""The row of a table or view in the JDBC catalog's schema, whatever database has it.

Source: Iceberg Java ``JdbcTableOperations`` and ``JdbcUtil``, schema versions V0 and V1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from icesql.catalog.writes.change import Conflict
from icesql.frozen import Frozen

# The conditions on rows of schema V1, which distinguishes the two kinds.
_ONLY: Final = {
    "TABLE": "AND (iceberg_type = 'TABLE' OR iceberg_type IS NULL)",
    "VIEW": "AND upper(iceberg_type) = 'VIEW'",
}
# Runs a statement with named parameters; the result has ``fetchone`` and ``rowcount``.
Execute = Callable[[str, Mapping[str, Any]], Any]


class JdbcRow(Frozen):
    """One row of the catalog ``catalog``; ``typed`` is schema V1."""

    catalog: str
    identifier: Sequence[str]
    typed: bool
    kind: str = "TABLE"

    @property
    def values(self) -> dict[str, Any]:
        """The parameters of ``where``."""
        above = ".".join(self.identifier[:-1])
        return {"catalog": self.catalog, "namespace": above, "name": self.identifier[-1]}

    @property
    def where(self) -> str:
        """The condition that selects the row."""
        return (
            "WHERE catalog_name = :catalog AND table_namespace = :namespace "
            f"AND table_name = :name {_ONLY[self.kind] if self.typed else ''}"
        )

    def set_location(
        self,
        execute: Execute,
        base: str | None,
        new: str,
        is_base: Callable[[str], bool],
        taken: type[Exception],
    ) -> Conflict | None:
        """Insert the row, or set its metadata location if the present one ``is_base``.

        Call it in a transaction. ``taken`` is the database's error for a row that exists.
        """
        name = f"the {self.kind.lower()} {'.'.join(self.identifier)}"
        if base is None:
            kind = (", iceberg_type", f", '{self.kind}'") if self.typed else ("", "")
            try:
                execute(
                    "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, "
                    f"metadata_location, previous_metadata_location{kind[0]}) "
                    f"VALUES (:catalog, :namespace, :name, :new, NULL{kind[1]})",
                    {**self.values, "new": new},
                )
            except taken:
                return Conflict(f"{name} was created meanwhile")
            return None
        query = f"SELECT metadata_location FROM iceberg_tables {self.where}"
        row = execute(query, self.values).fetchone()
        if row is None:
            return Conflict(f"{name} is gone")
        written = str(row[0])
        if is_base(written):
            changed = execute(
                "UPDATE iceberg_tables SET metadata_location = :new, previous_metadata_location = "
                f":old {self.where} AND metadata_location = :old",
                {**self.values, "new": new, "old": written},
            ).rowcount
            if changed == 1:
                return None
        return Conflict(f"{name} is no longer at {base}")
