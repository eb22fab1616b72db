"""Replace an aggregation by partial results of the tasks and their final aggregation.

    SELECT k, sum(x), avg(y) FROM t JOIN s ON … WHERE c GROUP BY k

becomes, in each task,  SELECT k AS k0, sum(x) AS a0, sum(y) AS a1, count(y) AS a2 … GROUP BY k
and in Spark            SELECT k0, sum(a0), sum(a1) / sum(a2) FROM partials GROUP BY k0

Spark computes aggregations of another form. Without GROUP BY, DuckDB on the driver computes the
final aggregation.
"""

from __future__ import annotations

import secrets
from collections.abc import Container, Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace
from sqlglot import exp
from sqlglot.errors import ErrorLevel

from icesql.engine.duckdb.described import register
from icesql.engine.duckdb.errors import translate
from icesql.engine.duckdb.sql.composed import rename_tables
from icesql.engine.duckdb.task_rows import batches_of
from icesql.engine.result_schema import (
    ResultColumn,
    arrow_schema,
    cast_batch,
    declare,
    declared_expression,
    selected,
)
from icesql.engine.spark.fragments.choice import FragmentChoice
from icesql.engine.spark.fragments.fragment import (
    Fragment,
    below,
    column_of,
    divisible_scans,
    is_local,
    read_instead,
    sources,
)
from icesql.engine.spark.sql.dialect import spelled_sql, write_added
from icesql.engine.spark.sql.kinds import kind, named, quoted_column, spelled
from icesql.frozen import Frozen
from icesql.query.pushdown.select_forms import has_only, is_plain_call

if TYPE_CHECKING:
    import pyarrow as pa

    from icesql.context import QueryContext
    from icesql.engine.duckdb.instance import InstancePool


# Kinds whose values are sent to Spark unchanged.
VALUES: Final = frozenset(
    {"integer", "decimal", "double", "float", "text", "date", "boolean", "timestamp", "timestamptz"}
)
_SUMMED: Final = frozenset({"integer", "decimal", "double", "float"})
_PARTS: Final = frozenset(
    {"expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset",
     "with_", "distinct", "qualify", "kind", "hint"}
)  # fmt: skip


def cut_aggregate(select: exp.Select, name: str, choice: FragmentChoice) -> Fragment | None:
    """Make an aggregation read the partial results of a fragment, columns ``k<n>`` and ``a<n>``.

    None, with nothing changed, if it does not have that form or ``choice`` declines.
    """
    if not has_only(select, _PARTS):
        return None
    distinct = select.args.get("distinct")
    if distinct is not None and distinct.args.get("on"):
        return None
    keys = _keys(select)
    aggregates = list(_aggregates(select))
    if keys is None or (not keys and not aggregates):
        return None
    candidates = divisible_scans(select)
    aliases = frozenset(sources(select))
    if not candidates or not all(is_local(each, aliases) for each in [*keys, *aggregates]):
        return None
    if not all(kind(key) in VALUES for key in keys) or not all(map(_splits, aggregates)):
        return None
    partials: list[exp.Expr] = []
    changes: list[tuple[exp.Expr, exp.Expr]] = []
    changes += [(node, _final(node, name, partials)) for node in aggregates]
    changes += [
        (node, column_of(name, f"k{at}", keys[at])) for node, at in _key_places(select, keys)
    ]
    if not _all_covered(select, aliases, {id(node): node for node, _ in changes}):
        return None
    columns = [named(key.copy(), f"k{at}") for at, key in enumerate(keys)]
    columns += [named(each, f"a{at}") for at, each in enumerate(partials)]
    inner = below(select, columns)
    if keys:
        inner.set("group", exp.Group(expressions=[key.copy() for key in keys]))
    made = choice.fragment(name, inner, candidates, keys)
    if made is None:
        return None
    made = replace(made, is_one_row=not keys)
    for node, new in changes:
        if isinstance(node.parent, exp.Select) and node.arg_key == "expressions":
            # A bare column was named by itself; its replacement has another name.
            new = named(new, node.alias_or_name) if node.alias_or_name else new
        node.replace(new)
    read_instead(select, name)
    if keys:
        grouped = [quoted_column(f"k{at}", name) for at in range(len(keys))]
        select.set("group", exp.Group(expressions=grouped))
    return made


def _keys(select: exp.Select) -> list[exp.Expr] | None:
    group = select.args.get("group")
    if group is None:
        return []
    if not has_only(group, ("expressions", "all")):
        return None
    if group.args.get("all"):
        listed = [
            each.unalias()
            for each in select.expressions
            if not any(map(_is_aggregate, each.find_all(exp.AggFunc)))
        ]
    else:
        listed = list(group.expressions)
    keys: list[exp.Expr] = []
    for each in listed:
        if isinstance(each, exp.Literal | exp.Tuple):
            return None
        if each not in keys:
            keys.append(each)
    return keys


def _is_aggregate(node: exp.Expr) -> bool:
    if not isinstance(node, exp.AggFunc):
        return False
    parent = node.parent
    while isinstance(parent, exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup):
        parent = parent.parent
    return not (isinstance(parent, exp.Window) and parent.this.find(type(node)) is node)


def _aggregates(select: exp.Select) -> Iterator[exp.Expr]:
    """The aggregate calls, with their FILTER if they have one."""
    for each in _after_grouping(select):
        for node in each.walk(prune=lambda node: isinstance(node, exp.Query)):
            if _is_aggregate(node):
                parent, around = node.parent, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)
                yield parent if isinstance(parent, around) else node


def _splits(node: exp.Expr) -> bool:
    """True if partial results of an aggregate can be combined into the exact result."""
    call = node.this if isinstance(node, exp.Filter) else node
    if not is_plain_call(call, exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max):
        return False
    if any(each is not call for each in call.find_all(exp.AggFunc)):
        return False
    possible = _SUMMED if isinstance(call, exp.Sum | exp.Avg) else VALUES
    return isinstance(call, exp.Count) or kind(call.this) in possible


def _final(node: exp.Expr, alias: str, partials: list[exp.Expr]) -> exp.Expr:
    """The final form of an aggregate; appends the partial aggregates it needs to ``partials``."""
    condition = node.expression if isinstance(node, exp.Filter) else None
    call = node.this if isinstance(node, exp.Filter) else node

    def partial(inner: exp.Expr, type_: exp.DataType | None = None) -> exp.Column:
        made: exp.Expr = inner
        if condition is not None:
            made = exp.Filter(this=inner, expression=condition.copy())
        if type_ is not None:
            made = exp.cast(made, type_)
        if made not in partials:
            partials.append(made)
        return quoted_column(f"a{partials.index(made)}", alias)

    whole = exp.DataType.build("DECIMAL(38, 0)")
    match call:
        case exp.Count():
            column = partial(call.copy())
            made = spelled("COALESCE(SUM({0}), 0)", column, like="BIGINT")
            made.set("engine_type", "BIGINT")
            return made
        case exp.Sum():
            # Spark has no HUGEINT; the end result is checked to fit a BIGINT.
            integer = kind(call.this) == "integer"
            made = spelled("SUM({0})", partial(call.copy(), whole if integer else None), like=call)
            made.set("engine_type", "HUGEINT" if integer else None)
            return made
        case exp.Avg():
            integer = kind(call.this) == "integer"
            total = partial(exp.Sum(this=call.this.copy()), whole if integer else None)
            count = partial(exp.Count(this=call.this.copy()))
            return spelled(
                "(CAST(SUM({0}) AS DOUBLE) / NULLIF(SUM({1}), 0))", total, count, like="DOUBLE"
            )
        case _:
            word = "MIN" if isinstance(call, exp.Min) else "MAX"
            return spelled(f"{word}({{0}})", partial(call.copy()), like=call)


def _key_places(select: exp.Select, keys: list[exp.Expr]) -> Iterator[tuple[exp.Expr, int]]:
    """Occurrences of the grouping keys outside aggregates, outermost first."""

    def ends(node: exp.Expr) -> bool:
        return node in keys or _is_aggregate(node) or isinstance(node, exp.Query)

    for each in _after_grouping(select):
        for node in each.walk(prune=ends):
            if node in keys:
                yield node, keys.index(node)


def _all_covered(select: exp.Select, aliases: frozenset[str], replaced: Container[int]) -> bool:
    """True if only keys and aggregates use columns of the tables, also in nested queries."""

    return not any(
        isinstance(node, exp.Column) and node.table in aliases and id(node) not in replaced
        for each in _after_grouping(select)
        for node in each.walk(prune=lambda node: id(node) in replaced)
    )


def _after_grouping(select: exp.Select) -> Iterator[exp.Expr]:
    """The expressions of a SELECT that are computed after grouping."""
    for part in ("expressions", "having", "order", "qualify"):
        value = select.args.get(part)
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, exp.Expression):
                yield each


# ------------------------------------------------------------------ the rest on the driver
# Without GROUP BY each task returns one row. For these few rows Spark would plan a shuffle and two
# stages, which takes longer than the tasks of a short query.


def _merged_sql(node: exp.Expr) -> str:
    """SQL that means the same in Spark and in DuckDB."""
    text, engine_type = spelled_sql(node, _duckdb_text), node.args.get("engine_type")
    return f"CAST({text} AS {engine_type})" if engine_type else text


def _duckdb_text(node: exp.Expr) -> str:
    return str(node.sql(dialect="duckdb", unsupported_level=ErrorLevel.IGNORE))


class Rest(Frozen):
    """SQL over the rows of one fragment, which it reads as table ``name``; returns ``columns``."""

    sql: str
    name: str
    schema: pa.Schema
    columns: tuple[ResultColumn, ...]

    def rows(
        self,
        partials: Generator[pa.RecordBatch, None, None],
        pool: InstancePool,
        query: QueryContext,
    ) -> Generator[pa.RecordBatch, None, None]:
        """The result, after reading and closing ``partials``. Raises icesql errors."""
        import duckdb
        import pyarrow as pa

        try:
            table = pa.Table.from_batches(partials, self.schema)
        finally:
            partials.close()
        instance, cursor = pool.cursor((), query.settings)
        try:
            register(cursor, self.name, table)
            schema = arrow_schema(self.columns)
            for batch in batches_of(cursor, self.sql, {}, query):
                yield cast_batch(batch, schema)
        except duckdb.Error as error:
            raise translate(error, ()) from error
        finally:
            instance.release(cursor)


def rest_of(
    tree: exp.Expr, fragments: Sequence[Fragment], columns: Sequence[ResultColumn], cursor: Any
) -> Rest | None:
    """The rest of a cut tree if it reads only one row of each task; else None.

    ``columns`` are the query's columns, which the rest has to return.
    """
    import duckdb
    import pyarrow as pa

    if len(fragments) != 1 or not fragments[0].is_one_row:
        return None
    (fragment,) = fragments
    if {table.name for table in tree.find_all(exp.Table)} != {fragment.name}:
        return None
    name = f"{fragment.name}_{secrets.token_hex(4)}"
    renamed = tree.copy()
    rename_tables(renamed, {fragment.name: name})
    sql = _duckdb_text(write_added(renamed, _merged_sql))
    schema = arrow_schema(fragment.columns)
    register(cursor, name, pa.Table.from_batches([], schema))
    try:
        kinds = cursor.sql(sql).types
    except duckdb.Error:
        # Fall back to Spark, which reports why it is not supported.
        return None
    finally:
        cursor.unregister(name)
    if [declare(kind) for kind in kinds] != [column.type for column in columns]:
        return None
    casts = [declared_expression(f"q.c{at}", kind) for at, kind in enumerate(kinds)]
    return Rest(selected(sql, casts), name, schema, tuple(columns))
