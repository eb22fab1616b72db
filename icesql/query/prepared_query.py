"""PreparedQuery: a bound query to reuse when the same text runs again, without parsing or binding.

A query is prepared only if it depends on nothing but its text, the settings and the metadata of the
tables. Each use resolves the names again, so it sees a commit, another catalog or a replaced table.
Queries that read the time or use time travel are never prepared. Parameters are values compared
with a column by ``=``, ``<`` and so on in the WHERE of one table; only the predicate pushed into
its scan is recomputed for new values. All other queries are parsed and bound each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from msgspec.structs import replace
from sqlglot import exp

from icesql.errors import Error
from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Operation, Predicate, Term
from icesql.query.bind import open_tables
from icesql.query.bound import BoundQuery
from icesql.query.constants.constant import Constant, Kind
from icesql.query.names import SelectScope, column_of, resolver, select_scopes
from icesql.query.pushdown.comparison import all_of, compare_constant
from icesql.query.pushdown.computed.expression import FLIPPED, expression_of
from icesql.query.pushdown.predicate import implied_by
from icesql.query.pushdown.push_down import conjuncts, wants_extremes
from icesql.query.pushdown.select_forms import COMPARED
from icesql.sql.edited_text import VALUE, UserText
from icesql.sql.parameters import literal, write_literal

if TYPE_CHECKING:
    from icesql.catalog.search_path import SearchPath
    from icesql.catalog.table import Table
    from icesql.config import Settings
    from icesql.context import QueryContext
    from icesql.scan.plan import TableScan
    from icesql.sql.statement import Query

_LARGEST_TREE: Final = 1_000
# The largest integer that fits every type it may get in the engine.
_LARGEST: Final = (1 << 63) - 1
_INTEGERS: Final = (t.IntegerType, t.LongType, t.DecimalType)
# Nodes allowed in a WHERE with parameters. None of them has a value that changes.
_PLAIN: Final = (
    *COMPARED, exp.Where, exp.And, exp.Paren, exp.Is,
    exp.Not, exp.Null, exp.Boolean, exp.Between, exp.In, exp.Column, exp.Identifier, exp.Literal,
    exp.Neg,
)  # fmt: skip


# Two loads of a table with equal versions are of the same state of it.
Version = tuple[tuple[str, ...], str, str | None, int, int, int | None, int]


class Compared(Frozen):
    """A condition ``column operation value``; ``place`` is the parameter's index from 0."""

    place: int
    operation: Operation
    term: Term
    type: t.IcebergType


class PreparedQuery(Frozen):
    """A bound query with the state on which it depends.

    ``tables`` are the versions of the tables of its scans; the scans themselves hold no table.
    ``conditions`` are those of its one scan if it has parameters: the predicate pushed for each, or
    its comparison with a parameter. ``nodes`` is the number of nodes of its tree.
    """

    statement: Query
    bound: BoundQuery
    tables: tuple[Version, ...]
    nodes: int
    settings: Settings
    kinds: tuple[type, ...]
    conditions: tuple[Predicate | Compared, ...]

    def takes(self, parameters: object) -> bool:
        """Whether the query was bound with values of the same types."""
        return parameter_kinds(parameters) == self.kinds

    def current_scans(
        self, values: Sequence[Any], names: SearchPath, query: QueryContext
    ) -> tuple[TableScan, ...] | None:
        """The scans with the current tables; None if the query is stale and has to be bound again.

        This is the only check. A query is stale under other settings (including the time zone), in
        a transaction, if the statement brings its own tables, if one of its names now has no table
        or
        another one, or if a table changed in any way. Changes of the session's views, macros or
        tables drop all prepared queries; queries that depend on variables, the clock or the search
        path in any other way are never prepared.
        """
        if query.settings != self.settings or query.tables or names.in_transaction:
            return None
        try:
            found = open_tables(self.bound.references, names, query)
        except Error:
            return None  # binding raises it with its offset in the SQL
        scans = []
        for scan, each, version in zip(self.bound.scans, found, self.tables, strict=True):
            if each is None or each.travel is not None or _version(each.table) != version:
                return None
            if each.metadata_table != scan.metadata_table:
                return None
            scans.append(replace(scan, table=each.table))
        if not self.kinds:
            return tuple(scans)
        (scan,) = scans
        return (replace(scan, row_filter=_pushed(self.conditions, values, query)),)

    def over(self, scans: tuple[TableScan, ...], values: Sequence[Any]) -> BoundQuery:
        """The query over the scans that ``current_scans`` returned for these values."""
        if not self.kinds:
            return replace(self.bound, scans=scans)
        text = self.bound.user_text
        assert text is not None
        # The tree keeps the first values: the engine runs the text, and no type or name of a column
        # depends on a value that the WHERE compares.
        return replace(self.bound, scans=scans, pushed=(), user_text=_with_values(text, values))


def parameter_kinds(parameters: object) -> tuple[type, ...] | None:
    """The types of values that may be replaced by others of the same types, else None."""
    if parameters is None:
        return ()
    if not isinstance(parameters, list | tuple):
        return None
    for each in parameters:
        if type(each) is int:
            if abs(each) > _LARGEST:
                return None
        # The engine may read this text as an infinite date, so it is handled specially.
        elif type(each) is not str or "inf" in each.lower() or not each.isascii():
            return None
    return tuple(map(type, parameters))


def prepare(
    parameters: object, statement: Query, bound: BoundQuery, query: QueryContext
) -> PreparedQuery | None:
    """Prepare a query bound with values; None if it depends on more than its text and metadata."""
    kinds = parameter_kinds(parameters)
    nodes = sum(1 for _ in statement.tree.dfs())
    travels = any(
        each.travel is not None or each.changes is not None or each.shown is not None
        for each in statement.references
    )
    if (
        kinds is None
        or travels
        or statement.files
        or bound.user_text is None
        or bound.has_lists
        or bound.notes
        or len(bound.scans) != len(bound.references)
        or nodes > _LARGEST_TREE
        or _values_of(bound.user_text) != ["?"] * len(kinds)
    ):
        return None
    tables = tuple(_version(each.table) for each in bound.scans)
    # The metadata of a table may be large, and outdated at the next use.
    bare = tuple(replace(each, table=cast("Table", None)) for each in bound.scans)
    made = replace(bound, scans=bare)
    conditions = _conditions(statement, bound, len(kinds), query) if kinds else ()
    if conditions is None:
        return None
    if kinds:
        assert isinstance(parameters, list | tuple)
        scan, text = bound.scans[0], bound.user_text
        # Recomputed from its own values, the query has to be equal to the bound one.
        if (
            _pushed(conditions, parameters, query) != scan.row_filter
            or _with_values(text, parameters) != text
        ):
            return None
    return PreparedQuery(statement, made, tables, nodes, query.settings, kinds, conditions)


def _version(table: Table) -> Version:
    """The metadata file alone is not enough: a REST catalog need not return its location."""
    metadata = table.metadata
    return (
        tuple(table.identifier),
        table.metadata_location,
        metadata.table_uuid,
        metadata.last_updated_ms,
        metadata.last_sequence_number,
        metadata.current_snapshot_id,
        metadata.current_schema_id,
    )


def _values_of(text: UserText) -> list[str]:
    """The texts that binding replaced by values: parameters, clocks, and calls of the session.

    Unnamed parameters are in the order of their values.
    """
    return [text.written(each.start, each.end) for each in text.edits if each.kind == VALUE]


def _conditions(
    statement: Query, bound: BoundQuery, count: int, query: QueryContext
) -> tuple[Predicate | Compared, ...] | None:
    """The conditions of a SELECT from one table; None unless they contain all parameters."""
    tree = statement.tree
    where = tree.args.get("where")
    if query.settings.engine != "local":
        return None
    if not isinstance(tree, exp.Select) or len(bound.scans) != 1 or where is None:
        return None
    scan = bound.scans[0]
    plain = (
        not wants_extremes(tree)
        and not tree.args.get("joins")
        and (scan.extremes, scan.counts, scan.left_out) == ((), (), ALWAYS_TRUE)
        and not scan.file_conditions
        and len(list(tree.find_all(exp.Query))) == 1
        and all(type(node) in _PLAIN for node in where.walk())
    )
    if not plain:
        return None
    (scope,) = select_scopes(tree, [scan.schema])
    found = [_condition(each, scope, scan, query) for each in conjuncts(where)]
    places = [each.place for each in found if isinstance(each, Compared)]
    nodes = sum(1 for node in tree.dfs() if "parameter" in node.meta)
    if any(each is None for each in found) or nodes != count:
        return None
    if sorted(places) != list(range(count)):
        return None
    return tuple(each for each in found if each is not None)


def _condition(
    node: exp.Expr, scope: SelectScope, scan: TableScan, query: QueryContext
) -> Predicate | Compared | None:
    if len(scope.items) != 1:
        return None
    resolve = resolver(scope, scope.items[0], scan.schema)
    if not any("parameter" in each.meta for each in node.walk()):
        return implied_by(expression_of(node), resolve, query, asks=False).predicate
    if not isinstance(node, COMPARED):
        return None
    column, value, name = node.this, node.expression, expression_of(node).name
    if "parameter" in column.meta:
        column, value, name = value, column, FLIPPED[name]
    field, place = column_of(column, resolve), value.meta.get("parameter")
    if field is None or not isinstance(place, int):
        return None
    if not isinstance(field.type, t.StringType if value.is_string else _INTEGERS):
        return None
    return Compared(place - 1, Operation(name), Term(field.field_id, field.name), field.type)


def _pushed(
    conditions: Sequence[Predicate | Compared],
    values: Sequence[Any],
    query: QueryContext,
) -> Predicate:
    if not query.settings.prune:
        return ALWAYS_TRUE
    parts = []
    for each in conditions:
        if isinstance(each, Compared):
            value = values[each.place]
            constant = Constant(Kind.TEXT if isinstance(value, str) else Kind.INTEGER, value)
            each = compare_constant(each.operation, each.term, each.type, constant, query)
        if each is not ALWAYS_TRUE:
            parts.append(each)
    return all_of(parts)


def _with_values(text: UserText, values: Sequence[Any]) -> UserText:
    """The text with these values for its parameters, which are in order."""
    left = iter(values)
    edits = [
        replace(edit, text=write_literal(literal(next(left, None)))) if edit.kind == VALUE else edit
        for edit in text.edits
    ]
    return replace(text, edits=tuple(edits))
