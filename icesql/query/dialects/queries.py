"""Translate queries: track the columns and types of WITH, FROM and set operations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from sqlglot import exp

from icesql.errors import UnsupportedSqlError
from icesql.iceberg import types as iceberg
from icesql.iceberg.metadata_columns import METADATA_COLUMNS
from icesql.iceberg.schema import Schema
from icesql.query.dialects import types as t
from icesql.query.dialects.scope import Columns, Item, Scope, names_of, table_name
from icesql.query.dialects.types import SqlType
from icesql.query.names import PARTITION, scan_index
from icesql.sql.positions import unsupported


class Queries(ABC):
    """Walks the queries of one tree, which a dialect translates in place.

    ``schemas`` are those of its scans, ``ctes`` the columns of the CTEs in scope, None if a CTE's
    are not known. ``partly_named``: an alias may name fewer columns than there are.
    """

    partly_named = True

    def __init__(self, schemas: Sequence[Schema], dialect_name: str) -> None:
        self.schemas, self.dialect_name = schemas, dialect_name
        self.ctes: dict[str, Columns | None] = {}

    def refuse(self, construct: str, node: exp.Expr, hint: str = "") -> UnsupportedSqlError:
        """The error for an untranslated construct, with the offset of a node."""
        return unsupported(f"{construct} in {self.dialect_name}", node, hint)

    def translate(self, node: exp.Expr, parent: Scope | None = None) -> Columns | None:
        """Translate a query in place; return its columns, None if they are not known."""
        before = self.ctes
        self._with(node, parent)
        found: Columns | None
        match node:
            case exp.Subquery():
                found = self.translate(node.this, parent)
                self.result_clauses(node, Scope(parent, [Item("", found)]))
            case exp.Select():
                found = self.select(node, Scope(parent))
            case exp.SetOperation():
                found = self.set_operation(node, parent)
                self.result_clauses(node, Scope(parent, [Item("", found)]))
            case exp.Values():
                found = self.values(node, Scope(parent))
            case _:
                raise self.refuse(f"{node.key.upper()} as a query", node)
        self.ctes = before
        return found

    @abstractmethod
    def select(self, node: exp.Select, scope: Scope) -> Columns | None:
        """Translate a SELECT in place, after its WITH."""

    @abstractmethod
    def united(
        self, node: exp.SetOperation, left: Columns | None, right: Columns | None
    ) -> Columns | None:
        """The columns of a set operation whose operands are translated."""

    @abstractmethod
    def result_clauses(self, node: exp.Query, scope: Scope) -> None:
        """Translate ORDER BY and LIMIT of a set operation or of a query in parentheses."""

    @abstractmethod
    def values(self, node: exp.Values, scope: Scope) -> Columns:
        """Translate VALUES in place; its rows see the names of ``scope``."""

    @abstractmethod
    def source(self, node: exp.Expr, scope: Scope) -> Columns | None:
        """Translate an item of FROM that is not a table, query or VALUES."""

    def column_type(self, type: iceberg.IcebergType) -> SqlType:
        """The dialect's type of a table column."""
        return t.of_iceberg(type)

    # ------------------------------------------------------------------ WITH, UNION

    def _with(self, node: exp.Expr, parent: Scope | None) -> None:
        """Translate the WITH of a query and put its CTEs in scope."""
        clause = node.args.get("with_")
        if clause is None:
            return
        self.ctes = dict(self.ctes)
        for cte in clause.expressions:
            names = cte.alias_column_names
            name = cte.alias.lower()
            if clause.args.get("recursive") and _is_recursive(cte):
                self.ctes.pop(name, None)
                # A recursive CTE has the types of its first query, to which DuckDB casts the
                # others.
                first = self.translate(cte.this.this.copy(), parent)
                self.ctes[name] = self.renamed(first, names, cte)
                self.translate(cte.this, parent)
            else:
                self.ctes[name] = self.renamed(self.translate(cte.this, parent), names, cte)

    def set_operation(self, node: exp.SetOperation, parent: Scope | None) -> Columns | None:
        """Translate a set operation in place, however long its chain; return its columns."""
        chain = [node]
        while type(chain[-1].this) is type(node) and not chain[-1].this.args.get("with_"):
            chain.append(chain[-1].this)
        found = self.translate(chain[-1].this, parent)
        for each in reversed(chain):
            found = self.united(each, found, self.translate(each.expression, parent))
        return found

    # ------------------------------------------------------------------ FROM

    def read_from(self, select: exp.Select, scope: Scope) -> None:
        """Translate FROM and joins of a SELECT in place; ``scope`` gets their items."""
        start = select.args.get("from_")
        if start is not None:
            self.read_item(start.this, scope)
        for join in select.args.get("joins") or ():
            self.read_join(join, scope)

    def read_join(self, join: exp.Join, scope: Scope) -> None:
        """Read the table of a JOIN; a dialect adds the condition, which sees the earlier items."""
        known = {name.lower() for item in scope.items for name, _ in item.columns or ()}
        before = len(scope.items)
        self.read_item(join.this, scope)
        using = frozenset(names_of(join.args.get("using") or ()))
        for item in scope.items[before:]:
            own = {name.lower() for name, _ in item.columns or ()}
            item.merged = using | (known & own if join.method == "NATURAL" else frozenset())
            item.filter_only = join.kind in ("SEMI", "ANTI")

    def read_item(self, node: exp.Expr, scope: Scope) -> None:
        """Read one item of FROM with the joins inside its parentheses."""
        match node:
            case exp.Table() if not isinstance(node.this, exp.Func):
                scope.items.append(self._table(node))
            case exp.Subquery() if isinstance(node.this, exp.Query):
                scope.items.append(self._aliased(node, self.translate(node, scope.parent)))
            case exp.Subquery() | exp.Paren():
                self.read_item(node.this, scope)
            case exp.Values():
                scope.items.append(self._aliased(node, self.values(node, Scope(scope))))
            case exp.Lateral() if isinstance(node.this, exp.Subquery):
                scope.items.append(self._aliased(node, self.translate(node.this, scope)))
            case _:
                scope.items.append(self._aliased(node, self.source(node, scope)))
        for join in node.args.get("joins") or ():
            self.read_join(join, scope)

    def _table(self, node: exp.Table) -> Item:
        """A scan, or a CTE; the columns of local files are not known."""
        index = scan_index(node)
        if index is None:
            return self._aliased(node, self.ctes.get(node.name.lower()))
        fields = self.schemas[index].fields
        item = self._aliased(
            node, tuple((each.name, self.column_type(each.type)) for each in fields)
        )
        item.hidden = {
            name: self.column_type(each.type) for name, each in METADATA_COLUMNS.items()
        } | {PARTITION: t.UNKNOWN}
        return item

    def _aliased(self, node: exp.Expr, columns: Columns | None) -> Item:
        """The item of a node, with its alias and the alias's column names."""
        return Item(table_name(node), self.renamed(columns, node.alias_column_names, node))

    def renamed(
        self, columns: Columns | None, names: Sequence[str], node: exp.Expr
    ) -> Columns | None:
        """Columns renamed by an alias; columns without a new name keep theirs."""
        if columns is None:
            return tuple((name, t.UNKNOWN) for name in names) if names else None
        if names and len(names) != len(columns) and not self.partly_named:
            raise self.refuse(f"{len(names)} names for {len(columns)} columns", node)
        if len(names) > len(columns):
            return None  # the engine reports the error
        types = [type for _, type in columns[: len(names)]]
        return (*zip(names, types, strict=True), *columns[len(names) :])


def _is_recursive(cte: exp.CTE) -> bool:
    """True if a CTE is a set operation that reads from itself."""
    name = cte.alias.lower()
    return isinstance(cte.this, exp.SetOperation) and any(
        each.name.lower() == name for each in cte.this.find_all(exp.Table)
    )
