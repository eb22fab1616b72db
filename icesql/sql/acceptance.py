"""Allow lists: what a query may contain; everything else is refused by name and position.

sqlglot parses far more than SELECT, and DuckDB runs anything that names a file, a setting or a
function that reads the machine. Statements, sources and clauses are allow lists; scalar functions
are refused if they access anything outside the query.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Final

from icesql.context import check_reading
from icesql.errors import nearest
from icesql.frozen import Frozen
from icesql.sql.grammar import SPARK, function_names, words_by_head
from icesql.sql.keywords import FILES_HINT, word_map, word_set
from icesql.sql.positions import of_files, syntax_error, unsupported
from icesql.sql.trees import exp

if TYPE_CHECKING:
    from icesql.sql.positions import Place


# ------------------------------------------------------------------ functions of the engine
# By the name that the engine resolves. ``check_function`` looks up each function in the user's
# tree, and the engine every call in the text that it is about to run, whatever the call's origin.


# Schemas and databases of the engine's functions: after any other name, a function is a method.
SCHEMAS: Final = word_set("main system temp memory pg_catalog information_schema")

_ALLOWED: Final = frozenset({"safe", "volatile"})
_REASONS: Final = {
    "leaks": "it shows what is inside the engine, not what is in a table",
    "system": "a query reads its tables and nothing else of the machine",
    "internal": "it is for the engine's own plans",
    "files": "this connection reads tables only; its owner allows files with connect(files=…)",
}
_UNKNOWN: Final = "DuckDB has no such function, or icesql does not classify it yet"


@functools.cache
def _table() -> tuple[dict[tuple[str, str], str], frozenset[str]]:
    found: dict[tuple[str, str], str] = {}
    planned: set[str] = set()
    for head, name in words_by_head("engine_functions.txt"):
        kind, name_class, *marks = head.split()
        found[kind, name] = name_class
        if marks:
            planned.add(name)
    return found, frozenset(planned)


def classes() -> dict[tuple[str, str], str]:
    """Return the checked-in table: (kind, name in lower case) → class; its head explains them."""
    return _table()[0]


def planned_functions() -> frozenset[str]:
    """Return the functions that the engine may evaluate while a query is planned."""
    return _table()[1]


def refusal(name: str, *, table: bool = False) -> str | None:
    """Return why a query may not call a function; None if it may.

    ``name`` is the bare name, without quotes and schema; ``table`` is True for a call in FROM.
    """
    known = _class_of(name, table=table)
    return None if known in _ALLOWED else _REASONS.get(known or "", _UNKNOWN)


def is_known(name: str) -> bool:
    """True if the table has a function or a word of that name."""
    return _class_of(name, table=False) is not None


def is_file_function(name: str) -> bool:
    """True if a table function reads the files named by its arguments, and nothing else."""
    return classes().get(("table", name.lower())) == "files"


def known_names() -> list[str]:
    """Return the names of all functions that an expression may call."""
    return [
        name for (kind, name), found in classes().items() if kind == "value" and found in _ALLOWED
    ]


def _class_of(name: str, *, table: bool) -> str | None:
    kinds = ("table",) if table else ("value", "word", "table")
    lowered = name.lower()
    return next((classes()[kind, lowered] for kind in kinds if (kind, lowered) in classes()), None)


# ------------------------------------------------------------------ trees


WHOLE: Final = "a variant is a whole value here; in DuckDB's dialect CAST(v AS JSON) is its JSON"
_TEXTS: Final = word_set("read_text read_blob glob sniff_csv read_duckdb")
_SELECT_PARTS: Final = word_set(
    "with_ expressions from_ joins laterals where group having qualify windows distinct order "
    "limit offset"
)
_PART_NAMES: Final = word_map("""
into = SELECT INTO
locks = FOR UPDATE and FOR SHARE
sample = USING SAMPLE
hint = an optimizer hint
match = MATCH_RECOGNIZE
connect = CONNECT BY
kind = SELECT AS STRUCT or AS VALUE
cluster = CLUSTER BY
distribute = DISTRIBUTE BY
sort = SORT BY
""")
_TABLE_PARTS: Final = word_set("this db catalog alias joins laterals version ordinality")
_TABLE_PART_NAMES: Final = word_map("""
pivots = PIVOT and UNPIVOT
hints = table hints
sample = TABLESAMPLE
partition = PARTITION (…)
changes = CHANGES (…)
rows_from = ROWS FROM
pattern = file patterns
format = file formats
indexed = INDEXED BY
system_time = system time
""")
# Keywords of an unfinished clause; sqlglot reads them as an alias.
_NO_ALIAS: Final = word_set(
    "ORDER GROUP LIMIT OFFSET FETCH WINDOW FOR PARTITION QUALIFY USING ON UNION EXCEPT "
    "INTERSECT HAVING WHERE JOIN NOT AND OR"
)
_JOIN_PARTS: Final = word_set("this on side kind using method expressions")
_JOIN_WORDS: Final = frozenset(
    {"", "INNER", "OUTER", "LEFT", "RIGHT", "FULL", "CROSS", "SEMI", "ANTI", "ASOF", "NATURAL"}
)

# BigQuery's time functions: binding folds them in a time-travel clause, no engine evaluates them.
_FOLDED = ("timestamp_seconds", "timestamp_millis", "timestamp_micros")
# Table functions that the engine has under another name or not at all; the others are in
# grammar/engine_functions.txt.
_TABLE_FUNCTIONS: Final = word_set(
    "explode explode_outer exploding_generate_series generate_subscripts iceberg_scan "
    "iceberg_snapshots iceberg_metadata posexplode"
)

# Functions whose second argument is the name of an aggregate, as a text.
UNNAMED_AGGREGATE: Final = "an aggregate that is not named by a text"
BY_TEXT_HINT: Final = "write list_aggregate(a_list, 'sum')"
CALL_BY_TEXT: Final = word_set("list_aggregate list_aggr array_aggregate array_aggr aggregate")

# Functions that return properties of the session, in the spellings of several systems.
SESSION_CALLS: Final = word_map("""
current_schema = schema
current_catalog = catalog
current_database = catalog
version = version
current_version = version
""")

_INSIDE: Final = "put the clause after the Iceberg table itself"

# Prefix of the names of views in a text after view expansion.
_VIEW: Final = "__view_"
# Prefixes of names under which an engine finds rows: a CTE of such a name would hide them.
RESERVED: Final = (
    "__scan_", "__fragment_", "__file_", "__sh", "__temp_", "__ref_", _VIEW,
    "__kept_", "__stream_", "__rows_", "__constants_", "__positions_", "__files_",
)  # fmt: skip

_REFUSED_NODES: Final = word_map("""
Command = this statement
Into = SELECT INTO
Lock = FOR UPDATE and FOR SHARE
Pivot = PIVOT and UNPIVOT
TableSample = TABLESAMPLE
MatchRecognize = MATCH_RECOGNIZE
SessionParameter = a session variable (@@name)
NextValueFor = a sequence
Hint = an optimizer hint
AtIndex = AT after a table
TableFromRows = TABLE (function)
JSONTable = JSON_TABLE
Changes = CHANGES (…)
Stream = STREAM
ReadCSV = read_csv()
ReadParquet = read_parquet()
Semicolon = an empty statement
""")


class Accepts(Frozen):
    """Permissions of a text.

    ``files``: functions in FROM may read files. ``views``: the text contains names of expanded
    views. ``calls``: check its functions now; False before macro expansion.
    """

    files: bool = False
    views: bool = False
    calls: bool = True


def has_only_text(tree: exp.Expr) -> str:
    """Return the construct in a tree that only the query's text can run; "" for none."""
    found = tree.find(exp.TableSample, exp.Pivot)
    if found is None:
        return ""
    return "TABLESAMPLE" if isinstance(found, exp.TableSample) else "PIVOT"


def check_tree(tree: exp.Expr, accepts: Accepts) -> None:
    """Refuse trees of another dialect that icesql does not run. Raises UnsupportedSqlError and
    SqlSyntaxError.
    """
    if not isinstance(tree, exp.Query):
        raise unsupported(_statement_name(tree), tree)
    for node in tree.walk():
        check_reading()
        if accepts.files and _reads_files(node):
            continue
        refused = _REFUSED_NODES.get(type(node).__name__)
        if refused:
            hint = "write sum(x) FILTER (WHERE …)" if isinstance(node, exp.Pivot) else ""
            raise unsupported(refused, node, hint)
        match node:
            case exp.Select():
                _check_parts_of(node, _SELECT_PARTS, _PART_NAMES)
                if not node.expressions:
                    raise syntax_error("SELECT without a column", node, ("a column",))
            case exp.Table():
                _check_table(node, accepts)
            case exp.From() | exp.Join():
                _check_from_item(node)
            case exp.Lateral(this=exp.Func() as inner) if accepts.calls:
                if not isinstance(inner, exp.Query):
                    check_source(function_name(inner), node)
            case exp.CTE():
                check_name(node.alias, node, views=accepts.views)
            case exp.Func() if accepts.calls:
                _check_call(node)
            case exp.DDL() | exp.DML() if not isinstance(node, exp.Query):
                from icesql.sql.syntax_errors import refusals

                raise unsupported(_statement_name(node), node, refusals("statements")["CREATE"])


_OF_VARIANTS: Final = word_set(
    "parse_json try_parse_json variant_get try_variant_get schema_of_variant "
    "schema_of_variant_agg is_variant_null to_variant_object is_valid_variant"
)


def check_spark_functions(tree: exp.Expr) -> None:
    """Refuse functions that Spark's function table lacks. Raises UnsupportedSqlError."""
    names = function_names(SPARK)
    for node in tree.find_all(exp.Anonymous):
        name = node.name.lower()
        if name in names or name in _TABLE_FUNCTIONS or name in SESSION_CALLS:
            continue
        from icesql.sql.syntax_errors import NO_ROW, SIMILAR, meaning

        near = nearest(name, sorted(names), NO_ROW, SIMILAR)
        hint = WHOLE if name in _OF_VARIANTS else meaning(name, SPARK) or near
        raise unsupported(f"the function {name}() in Spark's dialect", node, hint)


def check_calls(tree: exp.Expr) -> None:
    """Refuse functions below a sqlglot node. Raises UnsupportedSqlError."""
    for node in tree.find_all(exp.Func):
        _check_call(node)


def _check_call(node: exp.Func) -> None:
    name = function_name(node)
    if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc):
        if name in _FOLDED and node.find_ancestor(exp.Version) is not None:
            return
    elif not is_known(name):
        return
    # If sqlglot has a class for the function, check its name in the engine.
    check_function(name, node)


def _check_parts_of(node: exp.Expr, parts: Collection[str], names: Mapping[str, str]) -> None:
    """Refuse a part of a node that is not one of ``parts``, by its name."""
    for name, value in node.args.items():
        if value and name not in parts:
            raise unsupported(names.get(name, name.upper().replace("_", " ").strip()), node)


def _reads_files(node: exp.Expr) -> bool:
    """True if a node is a function in FROM that reads files."""
    in_from = isinstance(node.parent, exp.Table) and node.arg_key == "this"
    return in_from and isinstance(node, exp.Func) and is_file_function(function_name(node))


def _check_table(node: exp.Table, accepts: Accepts) -> None:
    _check_parts_of(node, _TABLE_PARTS, _TABLE_PART_NAMES)
    alias = node.args.get("alias")
    if alias is not None and alias.this is not None:
        _check_alias(node, alias)
    inner = node.this
    if isinstance(inner, exp.Dot):
        if not all(isinstance(part, exp.Identifier) for part in node.parts):
            raise unsupported("this table name", node)
    elif isinstance(inner, exp.Func):
        name = function_name(inner)
        if accepts.calls:
            check_source(name, node, files=accepts.files)
        if node.args.get("db") is not None:
            raise unsupported(f"a qualified function {name}()", node)
    elif isinstance(inner, exp.Values):
        refuse_travel(node, "VALUES")
    elif not isinstance(inner, exp.Identifier):
        shown = (
            "a parameter as a table"
            if isinstance(inner, (exp.Placeholder, exp.Parameter, exp.Literal, exp.Cast))
            else f"{_statement_name(inner) if inner is not None else 'this'} as a table"
        )
        raise unsupported(shown, node, "write the table's name, or iceberg_scan(?)")


def refuse_travel(node: exp.Table, what: str) -> None:
    """Raise UnsupportedSqlError for a time-travel clause of a node; ``what`` names the node."""
    clause = node.args.get("version")
    if clause is not None:
        raise unsupported(f"time travel on {what}", clause.meta.get("start"), _INSIDE)


def _check_alias(node: exp.Table, alias: exp.TableAlias) -> None:
    name = alias.this
    if not isinstance(name, exp.Identifier):
        # sqlglot parses t@main, and t$snapshots where $ is no letter, as "t AS @main".
        table = node.name
        shown = name.name if isinstance(name, exp.Expression) else str(name)
        construct = f"{table}@{shown} or {table}${shown} as a table name"
        columns = [each.name for each in alias.args.get("columns") or ()]
        if shown.lower() in ("branch", "tag") and len(columns) == 1:
            construct, shown = f"{table}@{shown}({columns[0]})", columns[0]
        raise unsupported(
            construct, node, f"write {table} FOR VERSION AS OF '{shown}', or quote the name"
        )
    check_name(name.name, node)
    if not name.quoted and name.name.upper() in _NO_ALIAS:
        raise syntax_error(f"nothing follows {name.name.upper()}", name, ("an expression",))


def _check_from_item(node: exp.From | exp.Join) -> None:
    this = node.this
    if not isinstance(this, (exp.Table, exp.Subquery, exp.Unnest, exp.Values, exp.Lateral)):
        raise unsupported(f"{_statement_name(this)} as a table", this)
    if this.args.get("pivots"):
        raise unsupported("PIVOT and UNPIVOT", this)
    if not isinstance(node, exp.Join):
        return
    for name, value in node.args.items():
        if value and name not in _JOIN_PARTS:
            raise unsupported(f"JOIN … {name.upper()}", this)
    for part in ("method", "side", "kind"):
        word = str(node.args.get(part) or "").upper()
        if word not in _JOIN_WORDS:
            # POSITIONAL JOIN pairs rows by their order, but the rows of a table have no order.
            raise unsupported(f"{word} JOIN", this)


def check_source(name: str, at: Place, *, files: bool = False) -> None:
    """Refuse a function in FROM; ``files``: allow those for files. Raises UnsupportedSqlError."""
    name = name.lower()
    if files and is_file_function(name):
        return
    if name not in _TABLE_FUNCTIONS and refusal(name, table=True) is not None:
        by_path = "iceberg_scan('path') reads an Iceberg table by its path"
        others = "CSV, JSON and Parquet files are read, by read_csv() and its like"
        hint = FILES_HINT if is_file_function(name) else others if name in _TEXTS else by_path
        is_reader = name.startswith(("read_", "parquet_", "st_read")) or name.endswith("_scan")
        refused = of_files if is_reader or hint is not by_path else unsupported
        raise refused(f"the table function {name}()", at, hint)


def check_name(name: str, at: Place, *, views: bool = False) -> None:
    """Refuse the name of a CTE or an alias that is reserved for rows in the engine.

    ``views``: allow names of expanded views. Raises UnsupportedSqlError.
    """
    if name.lower().startswith(RESERVED) and not (views and name.startswith(_VIEW)):
        raise unsupported(f'the name "{name}"', at, "it is reserved")


def check_function(name: str, at: Place) -> None:
    """Refuse a function that a query may not call. Raises UnsupportedSqlError with a hint."""
    reason = None if name.lower() in _TABLE_FUNCTIONS else refusal(name)
    if reason is not None:
        from icesql.sql.syntax_errors import SIMILAR, meaning

        hint = reason
        if not is_known(name):
            hint = meaning(name) or nearest(name, known_names(), reason, SIMILAR)
        raise unsupported(f"the function {name.lower()}()", at, hint)


def named_aggregate(call: Mapping[str, Any]) -> str | None:
    """Return the aggregate of ``list_aggregate(l, 'sum')`` or ``l.list_aggregate('sum')`` in
    DuckDB's tree; None if its name is not a string literal.
    """
    path = call["qualified_name"]["path"]
    is_method = len(path) > 1 and path[0].lower() not in SCHEMAS
    given = call["arguments"][0 if is_method else 1 :]
    literal = given[0]["expression"].get("literal") if given else None
    return str(literal["text"]) if literal and literal["kind"] == "STRING" else None


def function_name(node: exp.Expr) -> str:
    """Return the lower-case name of a function node."""
    if isinstance(node, (exp.Anonymous, exp.AnonymousAggFunc)):
        return node.name.lower()
    return node.sql_name().lower() if isinstance(node, exp.Func) else node.key


def _statement_name(node: exp.Expr) -> str:
    if isinstance(node, exp.Command):
        return str(node.this).upper()
    if isinstance(node, exp.Func):
        return f"the function {function_name(node)}()"
    return node.key.upper()
