"""Adapt expressions to DuckDB where it treats types or field names differently from icesql."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from icesql.engine.duckdb.sql.case_sensitive_fields import alike_names, rename_fields
from icesql.engine.duckdb.sql.composed import Change, changed
from icesql.engine.duckdb.sql.nanosecond_types import NANOS, adapt_types, has_types
from icesql.engine.duckdb.sql.read_text import TextReading
from icesql.errors import AmbiguousColumnError, UnsupportedSqlError
from icesql.frozen import Frozen
from icesql.iceberg.schema import Schema
from icesql.iceberg.types import UUID
from icesql.sql.trees import exp
from icesql.stack import with_deep_stack


class Adapter(Frozen):
    """How to adapt the texts of one query: for nanosecond and UUID types, and for fields ``alike``.

    ``by_value``: the changes depend on the constants of the text.
    """

    schemas: Sequence[Schema]
    cursor: Any
    has_types: bool
    alike: frozenset[str]
    by_value: bool

    def changes(
        self,
        sql: str,
        tables: Mapping[str, str],
        lists: Mapping[str, str],
        place: Callable[[int], int | None],
    ) -> list[Change]:
        """The replacements of expressions of a text, in order.

        ``tables`` maps scans to their names in the text, ``lists`` maps the placeholder of each
        long list to its literals. Raises UnsupportedSqlError, AmbiguousColumnError; ``place`` maps
        their offsets in the text to those in the user's SQL.
        """

        def read() -> list[Change]:
            reading = TextReading(sql, tables, lists, self.schemas, self.cursor)
            if self.alike:
                rename_fields(reading, self.alike)
            if self.has_types:
                adapt_types(reading)
            return reading.changes()

        try:
            return with_deep_stack(read)
        except (AmbiguousColumnError, UnsupportedSqlError) as error:
            if error.offset is not None:
                error.offset = place(error.offset)
            raise

    def adapted(self, sql: str, tables: Mapping[str, str], lists: Mapping[str, str]) -> str:
        """A text with its changes; errors have no offset, since the user did not write the text."""
        return changed(sql, self.changes(sql, tables, lists, lambda _: None))


def adapter_of(tree: exp.Expr, schemas: Sequence[Schema], cursor: Any) -> Adapter | None:
    """The adapter of a query; None where its text needs no change."""
    finer = has_types(tree, schemas, *NANOS)
    typed = finer or has_types(tree, schemas, UUID)
    alike = alike_names(schemas)
    return Adapter(schemas, cursor, typed, alike, finer) if typed or alike else None
