"""Translate queries: the names and types in scope of each SELECT, set operations, aggregates."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct, field
from sqlglot import exp

from icesql.errors import UnsupportedSqlError
from icesql.iceberg import types as iceberg
from icesql.iceberg.schema import METADATA_COLUMNS, Schema
from icesql.query.dialects import types as t
from icesql.query.dialects.types import SqlType
from icesql.query.names import PARTITION, scan_index
from icesql.sql.positions import unsupported

# ------------------------------------------------------------------ names in scope


Columns = tuple[tuple[str, SqlType], ...]


class Item(Struct):
    """One item of FROM: its name and columns in order; None if they are not known here.

    ``hidden`` are columns that ``*`` leaves out, ``merged`` those that USING or NATURAL merges with
    the items before it.
    """

    name: str
    columns: Columns | None
    hidden: Mapping[str, SqlType] = field(default_factory=dict)
    merged: frozenset[str] = frozenset()
    filter_only: bool = False

    def find(self, name: str) -> SqlType | None:
        """The type of a column, None if no column has this name."""
        if self.columns is None:
            return t.UNKNOWN
        return find(self.columns, name) or self.hidden.get(name.lower())


class Scope(Struct):
    """One SELECT: its FROM items, the aliases of its select list, and the SELECT around it."""

    parent: Scope | None = None
    items: list[Item] = field(default_factory=list)
    aliases: dict[str, SqlType] = field(default_factory=dict)
    variables: dict[str, SqlType] = field(default_factory=dict)
    aliases_first: bool = False

    def type_of(self, parts: Sequence[str]) -> SqlType:
        """The type of a column written as ``parts``; "unknown" if it is not found or not known."""
        found = self._own(parts)
        if found is None:
            return t.UNKNOWN if self.parent is None else self.parent.type_of(parts)
        return found

    def _own(self, parts: Sequence[str]) -> SqlType | None:
        first = parts[0].lower()
        if self.aliases_first and len(parts) == 1 and first in self.aliases:
            return self.aliases[first]
        if len(parts) > 1:
            for item in self.items:
                if item.name == first and (found := item.find(parts[1])) is not None:
                    return below(found, parts[2:])
            if any(item.columns is None for item in self.items) and self._is_outer(first):
                return None
        if (found := self._column(first)) is not None:
            return below(found, parts[1:])
        if first in self.aliases:
            return below(self.aliases[first], parts[1:])
        return None

    def _column(self, name: str) -> SqlType | None:
        """The type of a column; "unknown" if an item with unknown columns may have it."""
        unknown = None
        for item in self.items:
            found = item.find(name)
            if item.columns is None:
                unknown = found
            elif found is not None and (unknown is None or name not in item.merged):
                return found
        return unknown

    def _is_outer(self, table: str) -> bool:
        """True if a SELECT around this one has an item of this name."""
        outer = self.parent
        return outer is not None and (
            any(item.name == table for item in outer.items) or outer._is_outer(table)
        )

    def star(self, table: str = "") -> Columns | None:
        """The columns of ``*`` or ``table.*``, None if those of an item are not known."""
        found: list[tuple[str, SqlType]] = []
        for item in self.items:
            if item.filter_only or (table and item.name != table.lower()):
                continue
            if item.columns is None:
                return None
            found += [each for each in item.columns if table or each[0].lower() not in item.merged]
        return tuple(found)


def find(columns: Columns, name: str) -> SqlType | None:
    """The type of the column with this name, case-insensitively; None without one."""
    lowered = name.lower()
    return next((each for known, each in columns if known.lower() == lowered), None)


def below(found: SqlType, path: Sequence[str]) -> SqlType:
    """The type of a nested field of a struct, "unknown" if there is none."""
    for name in path:
        if found.kind != "struct":
            return t.UNKNOWN
        parts = tuple(zip(found.names, found.parts, strict=True))
        inner = find(parts, name)
        if inner is None:
            return t.UNKNOWN
        found = inner
    return found


def table_name(node: exp.Expr) -> str:
    """The name that qualifies the columns of an item."""
    return node.alias_or_name.lower()


def names_of(nodes: Iterable[exp.Expr]) -> Iterator[str]:
    """The names of identifiers in lower case."""
    return (each.name.lower() for each in nodes)


# ------------------------------------------------------------------ queries


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


# ------------------------------------------------------------------ aggregates


AGGREGATES: Final = frozenset(
    re.findall(
        r"\w+",
        """
        any_value approx_count_distinct arg_max arg_max_null arg_min arg_min_null avg
        bit_and bit_or bit_xor bool_and bool_or corr count count_if covar_pop covar_samp
        cume_dist dense_rank first first_value grouping grouping_id histogram kurtosis
        kurtosis_pop lag last last_value lead list listagg max median min mode nth_value
        ntile percent_rank quantile_cont quantile_disc rank regr_avgx regr_avgy regr_count
        regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy row_number skewness
        stddev_pop stddev_samp string_agg sum var_pop var_samp
        """,
    )
)


class Around(Struct):
    """The clauses around a call in the user's text, already translated to DuckDB."""

    distinct: bool = False
    filter: exp.Expr | None = None
    window: exp.Window | None = None
    order: exp.Order | None = None
    ignore_nulls: bool = False


def name_of(node: exp.Expr) -> str:
    """The name of a call in a template, in lower case; "" for other nodes."""
    if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc):
        return str(node.name).lower()
    return node.sql_name().lower() if isinstance(node, exp.Func) else ""


def wrapped(tree: exp.Expr, around: Around) -> exp.Expr:
    """``tree`` with the clauses of the user's call put around each aggregate of the template."""
    return with_aggregates(tree, lambda call: _wrapped(call, around))


def with_aggregates(tree: exp.Expr, around: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """Replace each aggregate of ``tree``, or ``tree`` if it has none, by ``around`` of it."""
    calls: list[exp.Expr] = []
    _collect(tree, calls)
    root = exp.Paren(this=tree)
    for call in calls or [tree]:
        place = exp.Placeholder()
        call.replace(place)
        place.replace(around(call))
    made: exp.Expr = root.this.pop()
    return made


def _collect(node: exp.Expr, found: list[exp.Expr]) -> None:
    """The outermost aggregates below ``node``, with FILTER and IGNORE NULLS of the template."""
    if isinstance(node, exp.Filter | exp.IgnoreNulls) or name_of(node) in AGGREGATES:
        found.append(node)
        return
    if isinstance(node, exp.Query):
        return
    for child in list(node.iter_expressions()):
        _collect(child, found)


def _wrapped(call: exp.Expr, around: Around) -> exp.Expr:
    own = call.this if isinstance(call, exp.Filter) else call
    if around.distinct:
        _make_distinct(own)
    condition = call.expression.this if isinstance(call, exp.Filter) else None
    given = around.filter
    if given is not None:
        given = given.copy()
        condition = given if condition is None else exp.and_(condition, given, copy=False)
    made = own.pop() if isinstance(call, exp.Filter) else call
    if condition is not None:
        made = exp.Filter(this=made, expression=exp.Where(this=condition))
    if around.window is not None:
        window = around.window.copy()
        window.set("this", made)
        return window
    return made


def _make_distinct(call: exp.Expr) -> None:
    if isinstance(call, exp.Anonymous):
        first, *rest = call.expressions
        order = first if isinstance(first, exp.Order) else None
        value = order.this if order is not None else first
        made: exp.Expr = exp.Distinct(expressions=[value])
        if order is not None:
            order.set("this", made)
            made = order
        call.set("expressions", [made, *rest])
    else:
        call.set("this", exp.Distinct(expressions=[call.this]))
