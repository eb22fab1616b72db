"""Compiles SQLAlchemy's statements to icesql's default dialect, which is DuckDB's."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from sqlalchemy import exc, schema, types
from sqlalchemy.sql import compiler, elements
from sqlalchemy.sql.selectable import Alias, FromClause
from sqlalchemy.sql.visitors import InternalTraversal

from icesql.quoting import literal
from icesql.sql.keywords import NO_COLUMN

# Tables with time travel, as FROM elements of SQLAlchemy.


class TravelledTable(Alias):
    """A table at a version or a time; with the columns of ``element``; ``name`` is its alias."""

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

    ``name`` is its alias in the statement; None lets SQLAlchemy generate one.
    """
    travelled: TravelledTable = TravelledTable._construct(table, name=name)
    travelled.version = version
    return travelled


def as_of(table: FromClause, instant: datetime | str, *, name: str | None = None) -> FromClause:
    """``table`` at a time: a datetime, or a text that ``TIMESTAMP AS OF`` accepts.

    A datetime without a zone is in the session's time zone. ``name`` is as in ``with_version``.
    """
    travelled: TravelledTable = TravelledTable._construct(table, name=name)
    travelled.instant = instant if isinstance(instant, str) else instant.isoformat(" ")
    return travelled


class IcesqlCompiler(compiler.SQLCompiler):
    """Compiles queries."""

    def limit_clause(self, select: Any, **kw: Any) -> str:
        """LIMIT and OFFSET, each if the statement has it."""
        text = ""
        if select._limit_clause is not None:
            text += "\n LIMIT " + self.process(select._limit_clause, **kw)
        if select._offset_clause is not None:
            text += "\n OFFSET " + self.process(select._offset_clause, **kw)
        return text

    def visit_travelled_table(self, travelled: TravelledTable, **kw: Any) -> str:
        """``table AS alias``, followed in FROM by the version or the time."""
        text: str = self.visit_alias(travelled, **kw)  # type: ignore[no-untyped-call]
        if not kw.get("asfrom"):
            return text
        if travelled.instant is not None:
            return f"{text} TIMESTAMP AS OF {literal(travelled.instant)}"
        version = travelled.version
        return (
            f"{text} VERSION AS OF {version if isinstance(version, int) else literal(str(version))}"
        )

    def visit_empty_set_expr(self, element_types: Any, **kw: Any) -> str:
        """The right side of ``IN ()``: a query without rows."""
        columns = ", ".join("NULL" for _ in element_types or [None])
        return f"SELECT {columns} WHERE 1 != 1"

    def visit_regexp_match_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """A regular expression matched anywhere in the value."""
        return self._regexp("regexp_matches", binary, **kw)

    def visit_not_regexp_match_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """The negation of ``regexp_match``."""
        return f"NOT {self.visit_regexp_match_op_binary(binary, operator, **kw)}"

    def visit_regexp_replace_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """Replaces the first match, or all matches with the flag ``g``."""
        return self._regexp("regexp_replace", binary, **kw)

    def visit_json_getitem_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """A value in a JSON text: as JSON, or for other types as text, cast if needed."""
        kw.pop("_cast_on_binary", None)
        is_json = binary.type._type_affinity is types.JSON
        name = "json_extract" if is_json else "json_extract_string"
        text = f"{name}({self.process(binary.left, **kw)}, {self.process(binary.right, **kw)})"
        if is_json or binary.type._type_affinity is types.String:
            return text
        return f"CAST({text} AS {self.dialect.type_compiler.process(binary.type)})"

    visit_json_path_getitem_op_binary = visit_json_getitem_op_binary

    def visit_bitwise_xor_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """The function ``xor``: the operator ``^`` means power."""
        left, right = self.process(binary.left, **kw), self.process(binary.right, **kw)
        return f"xor({left}, {right})"

    def get_select_precolumns(self, select: Any, **kw: Any) -> str:
        """DISTINCT, or DISTINCT ON with the expressions of ``distinct(…)``."""
        on = select._distinct_on
        if not on:
            text: str = super().get_select_precolumns(select, **kw)
            return text
        return f"DISTINCT ON ({', '.join(self.process(each, **kw) for each in on)}) "

    def _regexp(self, name: str, binary: elements.BinaryExpression[Any], **kw: Any) -> str:
        parts = [self.process(binary.left, **kw), self.process(binary.right, **kw)]
        flags = binary.modifiers["flags"] if binary.modifiers else None
        if flags is not None:
            parts.append(self.render_literal_value(flags, elements.literal("").type))
        return f"{name}({', '.join(parts)})"


class IcesqlTypeCompiler(compiler.GenericTypeCompiler):
    """Compiles types in CAST and in CREATE TABLE."""

    def visit_TIMESTAMP(self, type_: Any, **kw: Any) -> str:
        """TIMESTAMPTZ or TIMESTAMP, with or without a time zone."""
        return "TIMESTAMPTZ" if type_.timezone else "TIMESTAMP"

    visit_DATETIME = visit_TIMESTAMP

    def visit_UUID(self, type_: Any, **kw: Any) -> str:
        """Iceberg's uuid."""
        return "UUID"

    def visit_DOUBLE(self, type_: Any, **kw: Any) -> str:
        """DOUBLE, without the precision that some databases allow."""
        return "DOUBLE"

    def visit_FLOAT(self, type_: Any, **kw: Any) -> str:
        """DOUBLE by default, since SQLAlchemy's Float is Python's, of 64 bits; else REAL."""
        return "DOUBLE" if type_.precision is None or type_.precision > 24 else "REAL"

    def visit_ARRAY(self, type_: Any, **kw: Any) -> str:
        """A list, with the declared number of dimensions."""
        return self.process(type_.item_type, **kw) + "[]" * (type_.dimensions or 1)

    def visit_uuid(self, type_: Any, **kw: Any) -> str:
        """Iceberg's uuid, or text unless ``native_uuid``."""
        return "UUID" if type_.native_uuid else "VARCHAR"

    def visit_JSON(self, type_: Any, **kw: Any) -> str:
        """Text: Iceberg has no JSON type."""
        return "VARCHAR"

    visit_unicode = visit_JSON


class IcesqlIdentifierPreparer(compiler.IdentifierPreparer):
    """Quotes names with double quotes; a schema of several parts is quoted part by part."""

    reserved_words = compiler.IdentifierPreparer.reserved_words | NO_COLUMN

    def quote_schema(self, schema: str) -> str:
        """``catalog.namespace``, each part quoted if necessary."""
        return ".".join(self.quote(part) for part in schema.split("."))


# ------------------------------------------------------------------ CREATE and DROP


# Options of ``Table(…, icesql_partitioned_by=…)``: SQLAlchemy's dialect-specific arguments.
TABLE_OPTIONS: Final[list[tuple[Any, dict[str, Any]]]] = [
    (
        schema.Table,
        dict.fromkeys(("partitioned_by", "sorted_by", "location", "properties", "purge")),
    )
]


class IcesqlDDLCompiler(compiler.DDLCompiler):
    """Tables with columns, NOT NULL, defaults and comments.

    Keys, other constraints and indexes are left out, since nothing would enforce or use them: so
    models that have some still work. Generated columns and sequences raise CompileError.
    """

    def create_table_constraints(self, table: Any, *_: Any, **kw: Any) -> str:
        """Empty: Iceberg enforces no such constraints."""
        return ""

    def get_column_specification(self, column: Any, **kw: Any) -> str:
        """Name, type, DEFAULT, NOT NULL and COMMENT of a column.

        Raises CompileError for Computed and Identity.
        """
        for generated in (column.computed, column.identity):
            if generated is not None:
                raise exc.CompileError(
                    f"column {column.name} is {type(generated).__name__}, which Iceberg has not: "
                    "give its values with each row"
                )
        parts = [
            self.preparer.format_column(column),
            self.dialect.type_compiler.process(column.type, type_expression=column),
        ]
        default = self.get_column_default_string(column)
        if default is not None:
            parts.append(f"DEFAULT {default}")
        if not column.nullable:
            parts.append("NOT NULL")
        if column.comment is not None:
            parts.append(f"COMMENT {_text(column.comment)}")
        return " ".join(parts)

    def post_create_table(self, table: Any) -> str:
        """The comment of a table, and the options of this dialect."""
        options = table.dialect_options["icesql"]
        parts = []
        if table.comment is not None:
            parts.append(f"COMMENT {_text(table.comment)}")
        for option, words in (("partitioned_by", "PARTITIONED BY"), ("sorted_by", "SORTED BY")):
            listed = options[option]
            if listed:
                text = listed if isinstance(listed, str) else ", ".join(listed)
                parts.append(f"{words} ({text})")
        if options["location"]:
            parts.append(f"LOCATION {_text(options['location'])}")
        if options["properties"]:
            pairs = (
                f"{_text(name)} = {_text(value)}" for name, value in options["properties"].items()
            )
            parts.append(f"TBLPROPERTIES ({', '.join(pairs)})")
        return "".join(f" {part}" for part in parts)

    def visit_drop_table(self, drop: Any, **kw: Any) -> str:
        """DROP TABLE, which keeps the files.

        ``Table(…, icesql_purge=True)`` or ``?purge=true`` in the URL deletes them, too.
        """
        text: str = super().visit_drop_table(drop, **kw)  # type: ignore[no-untyped-call]
        purge = drop.element.dialect_options["icesql"]["purge"]
        if purge is None:
            purge = getattr(self.dialect, "purge", False)
        return f"{text} PURGE" if purge else text

    def visit_create_index(self, create: Any, *_: Any, **kw: Any) -> str:
        """Not run; see ``is_left_out``."""
        return f"-- Iceberg has no indexes: {create.element.name}"

    def visit_drop_index(self, drop: Any, **kw: Any) -> str:
        """Not run; see ``is_left_out``."""
        return f"-- Iceberg has no indexes: {drop.element.name}"

    def visit_create_sequence(self, create: Any, *_: Any, **kw: Any) -> str:
        """Raises CompileError."""
        raise exc.CompileError(f"Iceberg has no sequences: {create.element.name}")

    def visit_add_constraint(self, create: Any, **kw: Any) -> str:
        """Raises CompileError."""
        raise exc.CompileError("Iceberg has no constraints but NOT NULL")

    def visit_set_table_comment(self, create: Any, **kw: Any) -> str:
        """COMMENT ON TABLE."""
        return self._comment("TABLE", self.preparer.format_table(create.element), create)

    def visit_set_column_comment(self, create: Any, **kw: Any) -> str:
        """COMMENT ON COLUMN."""
        column = self.preparer.format_column(create.element, use_table=True, use_schema=True)
        return self._comment("COLUMN", column, create)

    def _comment(self, kind: str, name: str, create: Any) -> str:
        comment = create.element.comment
        text = "NULL" if comment is None else _text(comment)
        return f"COMMENT ON {kind} {name} IS {text}"


def _text(value: object) -> str:
    return literal(str(value))


def is_left_out(compiled: Any) -> bool:
    """True for CREATE INDEX and DROP INDEX, which are not run."""
    return isinstance(getattr(compiled, "statement", None), schema.CreateIndex | schema.DropIndex)
