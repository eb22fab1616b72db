"""Write a bound tree as Spark SQL that has the tree's meaning in DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ErrorLevel, SqlglotError, UnsupportedError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify

from icesql.engine.duckdb.sql.composed import rename_tables
from icesql.engine.duckdb_types import duckdb_type
from icesql.engine.spark.releases import WITH_RECURSION, check_sql
from icesql.engine.spark.sql.functions import rewrite_function
from icesql.engine.spark.sql.kinds import (
    Added,
    is_refusal,
    kind,
    kind_of_type,
    literal_text,
    refuse,
    string,
)
from icesql.engine.spark.sql.operators import rewrite_operator
from icesql.engine.spark.sql.output_names import bind_order, name_outputs
from icesql.engine.spark.sql.qualify_clause import filter_windows
from icesql.engine.spark.worker import encode_error
from icesql.sql.grammar import function_key, function_keys, kinds_of_nodes
from icesql.sql.parser.sqlglot_releases import prepare_to_write
from icesql.sql.positions import unsupported

if TYPE_CHECKING:
    from icesql.scan.plan import TableScan

_SYNTAX: Final = kinds_of_nodes("no functions")
_CARRIED: Final = frozenset({"time", "timestamp_ns", "timestamptz_ns", "uuid"})
_CARRIED_MAY_STAND: Final = kinds_of_nodes("around carried values")


def write_added(tree: exp.Expr, write: Callable[[exp.Expr], str]) -> exp.Expr:
    """Replace the added nodes of ``tree`` by their text, which ``write`` returns.

    sqlglot's generators cannot write unknown nodes, and compiled ones have no subclasses. So the
    text of each such node, innermost first, becomes a bare word of the tree.
    """
    for node in reversed(list(tree.dfs())):
        if type(node) is not Added:
            continue
        word = exp.Var(this=write(node))
        word.type = node.type
        if node is tree:
            return word
        node.replace(word)
    return tree


def spelled_sql(node: exp.Expr, write: Callable[[exp.Expr], str]) -> str:
    """The text of a node made by ``spelled``; ``write`` returns the text of the nodes inside."""
    return "".join(part if isinstance(part, str) else write(part) for part in node.args["parts"])


def _refusal_sql(node: exp.Expr) -> str:
    """RAISE_ERROR of an encoded error; the mark is a separate literal, as Spark quotes SQL."""
    error, mark = refuse(node.args["construct"]), node.args["mark"]
    parts = (
        (f"{error}\n{mark}", encode_error(error, mark).removeprefix(mark))
        if mark
        else (str(error),)
    )
    texts = ", ".join(_spark_text(string(part)) for part in parts)
    return f"RAISE_ERROR(CONCAT({texts}))"


def _added_sql(node: exp.Expr) -> str:
    return _refusal_sql(node) if is_refusal(node) else spelled_sql(node, _spark_text)


def _spark_text(node: exp.Expr) -> str:
    try:
        return str(node.sql(dialect="spark", unsupported_level=ErrorLevel.RAISE))
    except UnsupportedError as error:
        raise refuse(str(error)) from error


def write_spark(tree: exp.Expr) -> str:
    """A tree with added nodes as Spark's SQL. May change the tree.

    Raises UnsupportedSqlError for constructs that sqlglot would drop.
    """
    for node in tree.find_all(exp.DataType):
        named = _TIMESTAMPS.get(node.this)
        if named is not None:
            node.set("this", named)
    prepare_to_write(tree)
    return _spark_text(write_added(tree, _added_sql))


# Otherwise each would be Spark's TIMESTAMP, whose meaning depends on a setting.
_TIMESTAMPS: Final[Mapping[Any, Any]] = {
    **dict.fromkeys((exp.DataType.Type.TIMESTAMP, exp.DataType.Type.DATETIME),
                    exp.DataType.Type.TIMESTAMPNTZ),
    exp.DataType.Type.TIMESTAMPTZ: exp.DataType.Type.TIMESTAMPLTZ,
}  # fmt: skip


def qualified(tree: exp.Expr, scans: Sequence[TableScan]) -> exp.Expr:
    """A copy of the tree with qualified columns, expanded stars and annotated types.

    Raises UnsupportedSqlError if sqlglot cannot resolve a name.
    """
    schema: Mapping[str, Any] = {
        f"__scan_{index}": {
            column.name: duckdb_type(column.type) for column in scan.projection.fields
        }
        or {"__row": "INTEGER"}
        for index, scan in enumerate(scans)
    }
    for cte in tree.find_all(exp.CTE):
        if cte.args.get("key_expressions"):
            raise refuse("USING KEY")
    if any(each.args.get("recursive") for each in tree.find_all(exp.With)):
        check_sql("WITH RECURSIVE", WITH_RECURSION)
    for star in tree.find_all(exp.Star):
        table = star.parent.table if isinstance(star.parent, exp.Column) else ""
        if table and table.lower() not in _sources(tree):
            raise refuse(f"{table}.* of a struct")
    for node in tree.find_all(exp.Columns):
        raise refuse(f"COLUMNS({node.this.sql(dialect='duckdb')})")
    tree = tree.copy()
    name_outputs(tree, schema)
    try:
        made = qualify(tree, dialect="duckdb", schema=dict(schema), validate_qualify_columns=False)
        bind_order(made, schema)
        types = Dialect.get_or_raise("duckdb").EXPRESSION_METADATA | _TYPES
        return annotate_types(made, dict(schema), types, dialect="duckdb")
    except SqlglotError as error:
        raise refuse(f"this statement ({error})") from error


def _type_of_part(annotator: Any, node: exp.Expr) -> exp.Expr:
    """Annotate a value of a map, an item of a list or a field of a struct with its type."""
    whole, part = node.this.type, (node.expressions or [node.expression])[0]
    match kind_of_type(whole):
        case "map":
            found = whole.expressions[1:]
        case "struct":
            name = (literal_text(part) or "").lower()
            found = [each.args["kind"] for each in whole.expressions if each.name.lower() == name]
        case _ if isinstance(node, exp.Bracket):
            return cast("exp.Expr", annotator._annotate_bracket(node))
        case _:
            found = None
    annotator._set_type(node, found[0] if found else None)
    return node


_TYPE_OF_PART: Final = {"annotator": _type_of_part}
_TYPE_OF_FIRST: Final = {"annotator": lambda self, node: self._annotate_by_args(node, "this")}
# Types of expressions that sqlglot does not annotate itself.
_TYPES: Final[dict[Any, Any]] = {
    exp.First: _TYPE_OF_FIRST,
    exp.Last: _TYPE_OF_FIRST,
    exp.ArgMax: _TYPE_OF_FIRST,
    exp.ArgMin: _TYPE_OF_FIRST,
    exp.Bracket: _TYPE_OF_PART,
    exp.StructExtract: _TYPE_OF_PART,
}


def _sources(tree: exp.Expr) -> set[str]:
    """The names of all items in FROM, at any depth."""
    kinds = (exp.Table, exp.Subquery, exp.Lateral, exp.Unnest, exp.Values)
    return {node.alias_or_name.lower() for node in tree.find_all(*kinds)}


def spark_sql(tree: exp.Expr, names: Mapping[str, str], timezone: str, mark: str) -> str:
    """A qualified tree in Spark's SQL, with its scans renamed by ``names``.

    A row that Spark must not compute ends the query with an error after ``mark``.

    Raises UnsupportedSqlError that names a construct without an equivalent in Spark.
    """
    if tree.find(exp.ToMap) is not None:
        raise refuse("MAP {…}")
    tree = tree.copy()
    for select in tree.find_all(exp.Select):
        _order_distinct(select)
    filter_windows(tree)
    for node in reversed(list(tree.dfs())):
        made = rewrite_operator(node, timezone)
        if made is node:
            made = rewrite_function(node)
        if made is not node:
            node.replace(made)
    for node in tree.walk():
        if is_refusal(node):
            node.set("mark", mark)
    rename_tables(tree, names)
    return write_spark(tree)


def _order_distinct(select: exp.Select) -> None:
    """Order a SELECT DISTINCT by positions of its columns: Spark sees no other columns there."""
    order = select.args.get("order")
    if order is None or select.args.get("distinct") is None:
        return
    places = {each.unalias().unnest(): at for at, each in enumerate(select.expressions, 1)}
    for ordered in order.expressions:
        if ordered.this in places and not isinstance(ordered.this, exp.Literal):
            ordered.set("this", exp.Literal.number(places[ordered.this]))


def check_functions(tree: exp.Expr) -> None:
    """Raise UnsupportedSqlError for an unknown function or a misplaced carried value."""
    known = function_keys()
    for node in tree.walk():
        if isinstance(node, exp.Join) and str(node.args.get("method") or "").upper() == "ASOF":
            raise refuse("ASOF JOIN")
        _check_unnest(node)
        _check_nested_order(node)
        _check_in(node)
        if (
            isinstance(node, exp.Func)
            and node.key not in _SYNTAX
            and function_key(node) not in known
        ):
            raise unsupported(
                f"the function {_written(node)}() on Spark",
                node,
                "it is not in the function table; run it with engine = 'local'",
            )
        _check_carried(node)


def _written(node: exp.Func) -> str:
    if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc):
        return node.name.lower()
    text = node.sql(dialect="duckdb")
    name = text.partition("(")[0]
    return name.lower() if name.isidentifier() else node.sql_name().lower()


def _check_unnest(node: exp.Expr) -> None:
    """Refuse an UNNEST that returns another number of rows as LATERAL VIEW or explode()."""
    match node:
        case exp.Join() if isinstance(node.this, exp.Unnest):
            on = node.args.get("on")
            always = on is None or (isinstance(on, exp.Boolean) and on.this)
            if node.side or node.kind not in ("", "CROSS", "INNER") or not always:
                raise refuse("a JOIN with unnest() that has a side or a condition")
        case exp.Select() if sum(each.find(exp.Explode, exp.Unnest) is not None
                                 for each in node.expressions) > 1:  # fmt: skip
            raise refuse("several unnest() in one SELECT")
        case exp.Array() if not node.expressions:
            raise refuse("an empty list, which has no type there,")


def _check_in(node: exp.Expr) -> None:
    """Refuse ``x IN (SELECT …)`` except as a whole condition: Spark returns false for its NULL."""
    if not isinstance(node, exp.In) or node.args.get("query") is None:
        return
    child: exp.Expr = node
    negated = False
    while (parent := child.parent) is not None:
        match parent:
            case exp.Where() | exp.Having() | exp.Qualify() | exp.Filter():
                return
            case exp.Join() if child.arg_key == "on":
                return
            case exp.If() if child.arg_key == "this" and not negated:
                return
            case exp.Paren() | exp.And():
                pass
            case exp.Or() if not negated:
                pass
            case exp.Not() if child is node or (isinstance(child, exp.Paren) and not negated):
                negated = True
            case _:
                break
        child = parent
    raise refuse("IN (SELECT …) as a value", "it may be NULL; write EXISTS or a JOIN")


def _check_nested_order(node: exp.Expr) -> None:
    """Refuse to order lists and structs: their NULLs are greatest in DuckDB, least in Spark."""
    match node:
        case exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
            compared = [node.this, node.expression]
        case exp.Between():
            compared = [node.this]
        case exp.Ordered() | exp.Min() | exp.Max():
            compared = [node.this]
        case exp.Greatest() | exp.Least():
            compared = [node.this, *node.expressions]
        case exp.ArgMax() | exp.ArgMin():
            compared = [node.expression]
        case _:
            return
    if any(kind(each) in ("list", "struct") for each in compared):
        raise refuse("ordering lists or structs")


def _check_carried(node: exp.Expr) -> None:
    found = kind(node)
    if found not in _CARRIED or node.parent is None:
        return
    parent = node.parent
    if parent.key in _CARRIED_MAY_STAND:
        return
    if found == "uuid" and isinstance(parent, exp.Like | exp.ILike):
        # In Spark a UUID is a string.
        return
    raise refuse(f"{parent.key} of a {found}")
