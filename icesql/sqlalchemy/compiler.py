"""SQLAlchemy's statements in icesql's default spelling, which is DuckDB's."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import types
from sqlalchemy.sql import compiler, elements
from sqlalchemy.sql.selectable import Alias, FromClause
from sqlalchemy.sql.visitors import InternalTraversal

from icesql.sql.reserved import reserved

# Tables as they were, as something that SQLAlchemy selects from.


class TravelledTable(Alias):
    """A table at a version or at a time; its columns are those of ``element``, under ``name``."""

    __visit_name__ = "travelled_table"
    _traverse_internals = [  # noqa: RUF012 - of each instance, as SQLAlchemy declares it
        *Alias._traverse_internals,
        ("version", InternalTraversal.dp_plain_obj),
        ("instant", InternalTraversal.dp_plain_obj),
    ]
    inherit_cache = False

    version: str | int | None
    instant: str | None

    def _init(self, selectable: Any, *, name: str | None = None) -> None:
        super()._init(selectable, name=name)
        self.version = self.instant = None


def with_version(table: FromClause, version: str | int, *, name: str | None = None) -> FromClause:
    """``table`` at a branch, a tag or a snapshot id, as ``VERSION AS OF`` takes them.

    ``name`` is its alias in the statement; SQLAlchemy makes one where it is None.
    """
    travelled: TravelledTable = TravelledTable._construct(table, name=name)
    travelled.version = version
    return travelled


def as_of(table: FromClause, instant: datetime | str, *, name: str | None = None) -> FromClause:
    """``table`` at a time, as ``TIMESTAMP AS OF`` takes it: a text is one of icesql's forms.

    A datetime without a zone means the session's. ``name`` is as in ``with_version``.
    """
    travelled: TravelledTable = TravelledTable._construct(table, name=name)
    travelled.instant = instant if isinstance(instant, str) else instant.isoformat(" ")
    return travelled


class IcesqlCompiler(compiler.SQLCompiler):
    """Queries."""

    def limit_clause(self, select: Any, **kw: Any) -> str:
        """LIMIT and OFFSET, each where it is asked for."""
        text = ""
        if select._limit_clause is not None:
            text += "\n LIMIT " + self.process(select._limit_clause, **kw)
        if select._offset_clause is not None:
            text += "\n OFFSET " + self.process(select._offset_clause, **kw)
        return text

    def visit_travelled_table(self, travelled: TravelledTable, **kw: Any) -> str:
        """``table AS alias``, and in FROM the version or the time after it."""
        text: str = self.visit_alias(travelled, **kw)  # type: ignore[no-untyped-call]
        if not kw.get("asfrom"):
            return text
        if travelled.instant is not None:
            return f"{text} TIMESTAMP AS OF {literal(travelled.instant)}"
        version = travelled.version
        return f"{text} VERSION AS OF {version if isinstance(version, int) else literal(version)}"

    def visit_empty_set_expr(self, element_types: Any, **kw: Any) -> str:
        """The right side of ``IN ()``: a query of no row."""
        columns = ", ".join("NULL" for _ in element_types or [None])
        return f"SELECT {columns} WHERE 1 != 1"

    def visit_regexp_match_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """A regular expression that matches somewhere."""
        return self._matches(binary, **kw)

    def visit_not_regexp_match_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """One that matches nowhere."""
        return f"NOT {self._matches(binary, **kw)}"

    def visit_regexp_replace_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """The first match replaced, all of them with the flag ``g``."""
        return self._regexp("regexp_replace", binary, **kw)

    def visit_json_getitem_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """A value of a JSON text: as JSON, or as its text where another type is wanted."""
        kw.pop("_cast_on_binary", None)
        is_json = binary.type._type_affinity is types.JSON
        name = "json_extract" if is_json else "json_extract_string"
        text = f"{name}({self.process(binary.left, **kw)}, {self.process(binary.right, **kw)})"
        if is_json or binary.type._type_affinity is types.String:
            return text
        return f"CAST({text} AS {self.dialect.type_compiler.process(binary.type)})"

    def visit_json_path_getitem_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """The same by a path of several steps."""
        return self.visit_json_getitem_op_binary(binary, operator, **kw)

    def visit_bitwise_xor_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """By name: ``^`` is a power."""
        left, right = self.process(binary.left, **kw), self.process(binary.right, **kw)
        return f"xor({left}, {right})"

    def get_select_precolumns(self, select: Any, **kw: Any) -> str:
        """DISTINCT, or DISTINCT ON with the expressions of ``distinct(…)``."""
        on = select._distinct_on
        if not on:
            text: str = super().get_select_precolumns(select, **kw)
            return text
        return f"DISTINCT ON ({', '.join(self.process(each, **kw) for each in on)}) "

    def _matches(self, binary: elements.BinaryExpression[Any], **kw: Any) -> str:
        return self._regexp("regexp_matches", binary, **kw)

    def _regexp(self, name: str, binary: elements.BinaryExpression[Any], **kw: Any) -> str:
        parts = [self.process(binary.left, **kw), self.process(binary.right, **kw)]
        flags = binary.modifiers["flags"] if binary.modifiers else None
        if flags is not None:
            parts.append(self.render_literal_value(flags, elements.literal("").type))
        return f"{name}({', '.join(parts)})"


class IcesqlTypeCompiler(compiler.GenericTypeCompiler):
    """Types in CAST and in CREATE TABLE."""

    def visit_TIMESTAMP(self, type_: Any, **kw: Any) -> str:
        """With a zone or without."""
        return "TIMESTAMPTZ" if type_.timezone else "TIMESTAMP"

    def visit_DATETIME(self, type_: Any, **kw: Any) -> str:
        """As a TIMESTAMP."""
        return self.visit_TIMESTAMP(type_, **kw)

    def visit_UUID(self, type_: Any, **kw: Any) -> str:
        """Iceberg's uuid."""
        return "UUID"

    def visit_BLOB(self, type_: Any, **kw: Any) -> str:
        """Iceberg's binary."""
        return "BLOB"

    def visit_DOUBLE(self, type_: Any, **kw: Any) -> str:
        """Without the precision that some databases take."""
        return "DOUBLE"

    def visit_FLOAT(self, type_: Any, **kw: Any) -> str:
        """SQLAlchemy's Float is Python's, of 64 bits."""
        return "DOUBLE" if type_.precision is None or type_.precision > 24 else "REAL"

    def visit_ARRAY(self, type_: Any, **kw: Any) -> str:
        """A list, of as many dimensions as are named."""
        return self.process(type_.item_type, **kw) + "[]" * (type_.dimensions or 1)

    def visit_unicode(self, type_: Any, **kw: Any) -> str:
        """As text of any length."""
        return "VARCHAR"

    def visit_uuid(self, type_: Any, **kw: Any) -> str:
        """Iceberg's uuid, or text where that is wanted."""
        return "UUID" if type_.native_uuid else "VARCHAR"

    def visit_JSON(self, type_: Any, **kw: Any) -> str:
        """As text: Iceberg has no JSON."""
        return "VARCHAR"


class IcesqlIdentifierPreparer(compiler.IdentifierPreparer):
    """Names in double quotes; a schema of several parts is quoted part by part."""

    reserved_words = compiler.IdentifierPreparer.reserved_words | reserved()

    def quote_schema(self, schema: str) -> str:
        """``catalog.namespace`` with each part quoted where it has to be."""
        return ".".join(self.quote(part) for part in schema.split("."))


def literal(text: object) -> str:
    """A text as SQL."""
    return "'" + str(text).replace("'", "''") + "'"
