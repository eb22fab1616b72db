"""Compiles SQLAlchemy's CREATE and DROP: Iceberg has no constraints except NOT NULL."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import exc, schema
from sqlalchemy.sql import compiler

from icesql.quoting import literal

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
