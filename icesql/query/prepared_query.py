"""PreparedQuery: a bound query for when its text comes again, which is not parsed or bound again.

Prepared is what depends on nothing but the text, the settings and the metadata of the tables. Each
use looks up the names anew, so a commit, another catalog or a table of another name is seen; and
what tells the time or travels in time is never prepared. Parameters are values of ``=``, ``<`` and
their like against a column in the WHERE of one table; only what is pushed into its scan is made
anew with each of them. All else goes the whole way.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final, cast

from msgspec import Struct
from msgspec.structs import replace
from sqlglot import exp

from icesql.errors import Error
from icesql.iceberg import types as t
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Operation, Predicate, Term
from icesql.query.bind import open_tables
from icesql.query.bound import BoundQuery
from icesql.query.constants.constant import Constant, Kind
from icesql.query.constants.current_time import stop_clock
from icesql.query.constants.session_values import reads_session
from icesql.query.names import SelectScope, column_of, resolver, select_scopes
from icesql.query.pushdown.comparison import FLIPPED, all_of, compare_constant
from icesql.query.pushdown.computed.reading import expression_of
from icesql.query.pushdown.implied import implied_by
from icesql.query.pushdown.predicate import COMPARISONS
from icesql.query.pushdown.push_down import conjuncts, wants_extremes, with_names
from icesql.sql.parameters import literal, write_literal
from icesql.sql.user_text import VALUE, UserText

if TYPE_CHECKING:
    from icesql.catalog.search_path import SearchPath
    from icesql.catalog.table import Table
    from icesql.config import Settings
    from icesql.context import QueryContext
    from icesql.scan.table_scan import TableScan
    from icesql.sql.statement import Query

_LARGEST_TREE: Final = 1_000
# An integer that no type of the engine is too narrow for.
_LARGEST: Final = (1 << 63) - 1
_INTEGERS: Final = (t.IntegerType, t.LongType, t.DecimalType)
# Nodes of a WHERE with parameters, none of which has a value that changes.
_PLAIN: Final = (
    exp.Where, exp.And, exp.Paren, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Is,
    exp.Not, exp.Null, exp.Boolean, exp.Between, exp.In, exp.Column, exp.Identifier, exp.Literal,
    exp.Neg,
)  # fmt: skip


# By what two loads of a table are known to be of one state of it.
Version = tuple[tuple[str, ...], str, str | None, int, int, int | None, int]


class Compared(Struct, frozen=True):
    """A condition ``column operation value``, where ``place`` is that of the parameter from 0."""

    place: int
    operation: Operation
    term: Term
    type: t.IcebergType


class PreparedQuery(Struct, frozen=True):
    """A bound query with what it depends on.

    ``tables`` are the versions of the tables of its scans, which hold no table.
    ``conditions`` are those of its one scan if it has parameters: what was pushed of each, or the
    comparison with a parameter. ``nodes`` are how many its tree has.
    """

    statement: Query
    bound: BoundQuery
    tables: tuple[Version, ...]
    nodes: int
    settings: Settings
    kinds: tuple[type, ...]
    conditions: tuple[Predicate | Compared, ...]

    def takes(self, parameters: object) -> bool:
        """Whether the query was bound with values of the kinds of these."""
        return parameter_kinds(parameters) == self.kinds

    def current_scans(
        self, values: Sequence[Any], names: SearchPath, query: QueryContext
    ) -> tuple[TableScan, ...] | None:
        """The scans of its tables as they are now; None if the query is stale: bind it again.

        This is the one place that tells. Stale is a query under other settings (the time zone is
        one of them), in a transaction, with tables that the statement brings, and one of whose
        names means nothing or another table by now, or a table that changed in any way. Whoever
        changes views, macros or tables of the session drops all that is prepared; what depends on
        variables, the clock or the search path in any other way is never prepared.
        """
        if query.settings != self.settings or query.tables or names.in_transaction:
            return None
        try:
            tables = self._open_tables(names, query)
        except Error:
            return None  # binding says where in the SQL it is
        if tables is None or tuple(map(_version, tables)) != self.tables:
            return None
        scans = tuple(
            replace(scan, table=table) for scan, table in zip(self.bound.scans, tables, strict=True)
        )
        if not self.kinds:
            return scans
        (scan,) = scans
        return (replace(scan, row_filter=_pushed(self.conditions, values, scan, query)),)

    def _open_tables(self, names: SearchPath, query: QueryContext) -> list[Table] | None:
        tables = []
        found = open_tables(self.bound.references, names, query)
        for scan, each in zip(self.bound.scans, found, strict=True):
            if each is None or each.travel is not None:
                return None
            if each.metadata_table != scan.metadata_table:
                return None
            tables.append(each.table)
        return tables

    def over(self, scans: tuple[TableScan, ...], values: Sequence[Any]) -> BoundQuery:
        """The query over the scans that ``current_scans`` gave for these values."""
        if not self.kinds:
            return replace(self.bound, scans=scans)
        text = self.bound.user_text
        assert text is not None
        return replace(
            self.bound,
            tree=_tree_with_values(self.bound.tree, values),
            scans=scans,
            pushed=(),
            user_text=_with_values(text, values),
        )


def parameter_kinds(parameters: object) -> tuple[type, ...] | None:
    """The types of values that may be exchanged for others of theirs; None for all others."""
    if parameters is None:
        return ()
    if not isinstance(parameters, list | tuple):
        return None
    for each in parameters:
        if type(each) is int:
            if abs(each) > _LARGEST:
                return None
        # A text that may be an infinite date to the engine is looked at as such.
        elif type(each) is not str or "inf" in each.lower() or not each.isascii():
            return None
    return tuple(map(type, parameters))


def prepare(
    parameters: object, statement: Query, bound: BoundQuery, query: QueryContext
) -> PreparedQuery | None:
    """A query as it was bound with values; None if its text does not say all it depends on."""
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
        or statement.spark is not None
        or statement.translated
        or bound.user_text is None
        or bound.spark is not None
        or bound.has_lists
        or bound.notes
        or len(bound.scans) != len(bound.references)
        or nodes > _LARGEST_TREE
        or _tells_the_time(statement.tree, query)
        or _values_of(bound.user_text) != ["?"] * len(kinds)
    ):
        return None
    tables = tuple(_version(each.table) for each in bound.scans)
    # The metadata of a table may be large, and old when the text comes again.
    bare = tuple(replace(each, table=cast("Table", None)) for each in bound.scans)
    made = replace(bound, scans=bare)
    if not kinds:
        return PreparedQuery(statement, made, tables, nodes, query.settings, (), ())
    conditions = _conditions(statement, bound, len(kinds), query)
    if conditions is None:
        return None
    assert isinstance(parameters, list | tuple)
    # Made anew from the values that it was bound with it has to be what it was bound to.
    scan = bound.scans[0]
    if _pushed(conditions, parameters, scan, query) != scan.row_filter:
        return None
    text = bound.user_text
    if _with_values(text, parameters) != text:
        return None
    if _tree_with_values(bound.tree, parameters) != bound.tree:
        return None
    return PreparedQuery(statement, made, tables, nodes, query.settings, kinds, conditions)


def _version(table: Table) -> Version:
    """The metadata file alone does not tell: a REST catalog need not name one."""
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
    """The words for which binding put values: parameters, and what only a session knows.

    Parameters without names are in the order of their values.
    """
    return [text.written(each.start, each.end) for each in text.edits if each.kind == VALUE]


def _tells_the_time(tree: exp.Expr, query: QueryContext) -> bool:
    stopped = tree.copy()
    return bool(stop_clock(stopped, query)) or stopped != tree or reads_session(tree)


def _conditions(
    statement: Query, bound: BoundQuery, count: int, query: QueryContext
) -> tuple[Predicate | Compared, ...] | None:
    """The conditions of a SELECT from one table; None unless all parameters are in them."""
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
    found = [_condition(each, scope, scan, query) for each in conjuncts(where.this)]
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
        return implied_by(expression_of(node), resolve, query, None).predicate
    if not isinstance(node, exp.EQ | exp.NEQ | exp.LT | exp.LTE | exp.GT | exp.GTE):
        return None
    operation = COMPARISONS[expression_of(node).name]
    column, value = node.this, node.expression
    if "parameter" in column.meta:
        column, value, operation = value, column, FLIPPED[operation]
    field, place = column_of(column, resolve), value.meta.get("parameter")
    if field is None or not isinstance(place, int):
        return None
    is_text = isinstance(value, exp.Literal) and value.is_string
    if not isinstance(field.type, t.StringType if is_text else _INTEGERS):
        return None
    return Compared(place - 1, operation, Term(field.field_id, field.name), field.type)


def _pushed(
    conditions: Sequence[Predicate | Compared],
    values: Sequence[Any],
    scan: TableScan,
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
    return with_names(all_of(parts), scan.schema) if parts else ALWAYS_TRUE


def _tree_with_values(tree: exp.Expression, values: Sequence[Any]) -> exp.Expression:
    """The tree with these values in the places of its parameters."""
    return cast("exp.Expression", _copied(tree, values))


def _copied(node: Any, values: Sequence[Any]) -> Any:
    # sqlglot's own copy takes three times as long, as it copies each dictionary deeply.
    if isinstance(node, list):
        return [_copied(each, values) for each in node]
    if not isinstance(node, exp.Expression):
        return node
    place = node.meta.get("parameter")
    if place is not None:
        made = literal(values[place - 1])
    else:
        made = type(node)(**{key: _copied(each, values) for key, each in node.args.items()})
        made.comments = None if node.comments is None else list(node.comments)
        made.type = node.type
    made.meta.update(deepcopy(node.meta) if _is_deep(node.meta) else node.meta)
    return made


def _is_deep(meta: dict[str, Any]) -> bool:
    return any(isinstance(each, list | dict | set) for each in meta.values())


def _with_values(text: UserText, values: Sequence[Any]) -> UserText:
    """The text with these values at the places of its parameters, which are in their order."""
    left = iter(values)
    edits = [
        replace(edit, text=write_literal(literal(next(left, None)))) if edit.kind == VALUE else edit
        for edit in text.edits
    ]
    return replace(text, edits=tuple(edits))
