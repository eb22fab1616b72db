"""Replace the tables and files in a tree by names, and return a reference for each.

An Iceberg table becomes ``"__scan_<i>"``, and ``read_csv('x')`` or ``'x.csv'``
``"__file_<i>"``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import TYPE_CHECKING, Final

from icesql.errors import AmbiguousTableError, nearest
from icesql.frozen import Frozen
from icesql.quoting import quoted
from icesql.sql.acceptance import function_name, is_file_function, refuse_travel
from icesql.sql.edited_text import CUT, NAME, TABLE, Edit
from icesql.sql.keywords import FILES_HINT, FORMATS_HINT, word_map
from icesql.sql.positions import of_files, offset_of, syntax_error, unsupported
from icesql.sql.show import PREFIX
from icesql.sql.statement import INFORMATION_SCHEMA, FileReference, Query, Shown, TableReference
from icesql.sql.table_name import Parts
from icesql.sql.time_travel import TimeTravel, travel_of
from icesql.sql.trees import exp

if TYPE_CHECKING:
    from icesql.sql.time_travel import ChangeRange


_LAST: Final = 1 << 60
# Options of DuckDB's iceberg_scan that choose a snapshot.
_VERSIONS: Final = {
    "snapshot_from_id": "VERSION",
    "snapshot_from_timestamp": "TIMESTAMP",
    "version": "VERSION",
}
# Table functions with the path of an Iceberg table as their argument.
_FUNCTIONS: Final = ("iceberg_scan", "iceberg_snapshots", "iceberg_metadata")


class _Qualified(Frozen):
    """A table without alias that a column may qualify with more than its last part."""

    parts: Parts
    alias: str


def take_references(
    tree: exp.Expr,
    edits: list[Edit],
    shown: Mapping[int, Shown | Query] | None = None,
    *,
    seconds: bool,
) -> tuple[TableReference, ...]:
    """Rewrite ``tree`` in place and return its references, in the order of the text.

    ``edits`` get the changes to the text. ``shown`` are the statements in FROM, by the offsets of
    the names that replace them.

    The name of a CTE in scope is not a table. Columns written ``namespace.table.column`` are
    rewritten to the alias. Raises UnsupportedSqlError, SqlSyntaxError,
    AmbiguousTableError.
    """
    found = sorted(_iceberg_tables(tree), key=lambda table: table.meta.get("start", _LAST))
    own = _own_aliases(tree, {id(table) for table in found})
    qualified: dict[int, list[_Qualified]] = {}
    references = []
    for index, table in enumerate(found):
        clause, offset = table.args.get("version"), offset_of(table)
        travel, changes, schema = _travel(clause, seconds)
        path = metadata = shown_statement = None
        parts: Parts
        if isinstance(table.this, exp.Func):
            alias = function_name(table.this)
            path, given = _scan_path(table, alias)
            if travel is not None and given is not None:
                raise unsupported("two versions of one table", table, "give one of them")
            travel = travel or given
            parts = (path.rstrip("/").rsplit("/", 1)[-1] or path,)
            metadata = None if alias == "iceberg_scan" else alias
        else:
            parts = tuple(part.name for part in table.parts)
            if not all(parts):
                raise syntax_error("a table name with an empty part", table)
            alias = own.get(id(table), parts[-1])
            shown_statement = _shown(table, parts, shown or {})
            if shown_statement is not None and (travel is not None or changes is not None):
                raise unsupported("time travel on this table", table, "put it into the statement")
        start, stop = _span(table)
        if clause is not None and clause.meta.get("end", 0) > clause.meta["start"]:
            edits.append(Edit(clause.meta["start"], clause.meta["end"], CUT))
        given_alias = "" if table.alias else alias
        if len(parts) > 1 and given_alias:
            owner = table.find_ancestor(exp.Select)
            lowered = tuple(part.lower() for part in parts)
            qualified.setdefault(id(owner), []).append(_Qualified(lowered, alias))
        references.append(
            TableReference(
                index,
                parts,
                path,
                travel,
                offset,
                metadata,
                changes,
                shown_statement,
                stop,
                given_alias,
                schema=schema,
            )
        )
        rename_table(table, f"__scan_{index}", alias, (start, stop), edits)
    if qualified:
        _rewrite_columns(tree, qualified, edits)
    return tuple(references)


def _shown(
    table: exp.Table, parts: Parts, shown: Mapping[int, Shown | Query]
) -> Shown | Query | None:
    """Return the statement, or the table of information_schema, whose rows a name represents."""
    lowered = tuple(part.lower() for part in parts)
    if lowered[0].startswith(PREFIX) and len(parts) == 1:
        return shown.get(offset_of(table) or -1)
    if len(parts) in (2, 3) and lowered[-2] == "information_schema":
        if lowered[-1] in INFORMATION_SCHEMA:
            return Shown("INFORMATION_SCHEMA", None, parts[:-2], None, lowered[-1])
        every = f"has {', '.join(INFORMATION_SCHEMA)}"
        hint = nearest(lowered[-1], INFORMATION_SCHEMA, every, "did you mean {}?")
        raise unsupported(f"information_schema.{parts[-1]}", table, hint)
    return None


def _iceberg_tables(tree: exp.Expr) -> Iterator[exp.Table]:
    """Yield tables other than CTEs, using an explicit stack: long chains are deep trees."""
    # Each node with the names of CTEs in scope, and recurring.r inside the recursive CTE r.
    stack: list[tuple[exp.Expr, frozenset[Parts]]] = [(tree, frozenset())]
    while stack:
        node, visible = stack.pop()
        clause = node.args.get("with_")
        if clause is not None:
            for cte in clause.expressions:
                name = cte.alias.lower()
                own = {(name,), ("recurring", name)} if clause.args.get("recursive") else set()
                stack.append((cte, visible | own))
                visible = visible | {(name,)}
        if isinstance(node, exp.Table):
            is_function = isinstance(node.this, exp.Func)
            if isinstance(node.this, exp.Identifier) and _written(node) in visible:
                refuse_travel(node, f'the WITH query "{node.name}"')
            elif isinstance(node.this, exp.Values):
                pass
            elif not is_function or function_name(node.this) in _FUNCTIONS:
                yield node
            else:
                refuse_travel(node, f"{function_name(node.this)}()")
        stack.extend((child, visible) for child in node.iter_expressions() if child is not clause)


def _written(table: exp.Table) -> Parts:
    return tuple(part.name.lower() for part in table.parts)


def _travel(
    clause: exp.Version | None, seconds: bool
) -> tuple[TimeTravel | None, ChangeRange | None, str]:
    """Return the snapshot, the changes, and the schema of WITH SNAPSHOT or CURRENT SCHEMA or ""."""
    if clause is None:
        return None, None, ""
    schema = str(clause.meta.get("schema", ""))
    match clause.args["this"]:
        case "SCHEMA":
            return None, None, schema
        case "CHANGES":
            from icesql.sql.time_travel import read_changes

            return None, read_changes(clause, seconds=seconds), schema
        case kind:
            value, offset = clause.args["expression"], clause.meta.get("start")
            text = clause.meta.get("text", "")
            travel = travel_of(kind, value, seconds=seconds, offset=offset, text=text)
            return travel, None, schema


def _scan_path(table: exp.Table, function: str) -> tuple[str, TimeTravel | None]:
    """Return path and version of ``iceberg_scan('path' [, snapshot_from_id => id])``."""
    offset = offset_of(table)
    arguments = list(table.this.expressions)
    if not arguments:
        raise syntax_error(f"{function}() needs a path", offset, ("a text",))
    path, travel = arguments[0], None
    if not (isinstance(path, exp.Literal) and path.is_string):
        raise syntax_error(
            f"the path of {function}() is a text in single quotes or a parameter", offset
        )
    for argument in arguments[1:]:
        named = isinstance(argument, (exp.Kwarg, exp.PropertyEQ, exp.EQ))
        name = argument.this.name.lower() if named else argument.sql()
        value = argument.expression if named else None
        if name in _VERSIONS and value is not None and travel is None:
            travel = travel_of(_VERSIONS[name], value, seconds=False, offset=offset)
        elif name != "allow_moved_paths":
            # Moved tables are always found; the other options belong to DuckDB's own reader.
            raise unsupported(
                f"the option {name} of {function}()",
                offset,
                f"a version is chosen with {function}('path') FOR VERSION AS OF …",
            )
    if not path.this:
        raise syntax_error(f"{function}() needs a path", offset, ("a text",))
    return str(path.this), travel


def _span(table: exp.Table) -> tuple[int | None, int | None]:
    """Return the span of the table's name, or of the call that replaces it."""
    if isinstance(table.this, exp.Func):
        return table.this.meta.get("start"), table.this.meta.get("stop")
    last = table.parts[-1].meta.get("end")
    return table.parts[0].meta.get("start"), None if last is None else last + 1


def rename_table(
    table: exp.Table,
    name: str,
    alias: str,
    span: tuple[int | None, int | None],
    edits: list[Edit],
) -> None:
    """Give a table its name in the engine, and the alias if it has none, in tree and text."""
    given = table.args.get("alias") or exp.TableAlias()
    after = ""
    if given.this is None:
        given.set("this", exp.to_identifier(alias, quoted=True))
        after = f" AS {quoted(alias)}"
    for part in ("db", "catalog", "version"):
        table.set(part, None)
    table.set("this", exp.to_identifier(name, quoted=True))
    table.set("alias", given)
    start, stop = span
    if start is not None and stop is not None:
        edits.append(Edit(start, stop, TABLE, name, after=after))


def _own_aliases(tree: exp.Expr, tables: Set[int]) -> dict[int, str]:
    """Return, by ``id``, the aliases of tables that share their last name with others in a FROM.

    ``FROM a.t, b.t``: their aliases are "a.t" and "b.t", because ``t.x`` would be ambiguous.
    Raises AmbiguousTableError for such a column, and for two equal aliases.
    """
    aliases: dict[int, str] = {}
    for select in tree.find_all(exp.Select):
        by_name: dict[str, list[exp.Expr]] = {}
        for node in _sources(select):
            name = node.alias_or_name.lower()
            if isinstance(node, exp.Table) and isinstance(node.this, exp.Func) and not node.alias:
                name = function_name(node.this)
            if name:
                by_name.setdefault(name, []).append(node)
        for name, nodes in by_name.items():
            if len(nodes) == 1:
                continue
            seen: set[str] = set()
            for node in nodes:
                full = name
                if id(node) in tables and isinstance(node, exp.Table) and not node.alias:
                    full = ".".join(part.name for part in node.parts)
                if full.lower() in seen:
                    raise AmbiguousTableError(node.alias_or_name or name, offset=offset_of(node))
                seen.add(full.lower())
                if full != name:
                    aliases[id(node)] = full
            _check_unqualified(select, name)
    return aliases


def _check_unqualified(select: exp.Select, name: str) -> None:
    """Refuse ``name.column`` if the FROM of ``select`` has several tables of the name."""
    for column in select.find_all(exp.Column):
        if column.args.get("db") or column.table.lower() != name:
            continue
        scope = column.find_ancestor(exp.Select)
        while scope is not None and scope is not select:
            if any(node.alias_or_name.lower() == name for node in _sources(scope)):
                break
            scope = scope.find_ancestor(exp.Select)
        if scope is select:
            raise AmbiguousTableError(column.table, offset=offset_of(column))


def _sources(select: exp.Select) -> Iterator[exp.Expr]:
    clause = select.args.get("from_")
    stack = [clause.this] if clause is not None else []
    stack += [join.this for join in select.args.get("joins") or ()]
    stack.reverse()
    while stack:
        node = stack.pop()
        stack.extend(join.this for join in node.args.get("joins") or ())
        inner = node.this if isinstance(node, exp.Subquery) else None
        if isinstance(inner, (exp.Table, exp.Subquery)) and not node.alias:
            stack.append(inner)  # parentheses around a join
        elif isinstance(node, exp.Table) or node.alias:
            yield node


def _rewrite_columns(
    tree: exp.Expr, qualified: dict[int, list[_Qualified]], edits: list[Edit]
) -> None:
    for column in list(tree.find_all(exp.Column)):
        if not column.args.get("db"):
            continue
        dots: list[exp.Dot] = []
        top: exp.Expr = column
        while isinstance(top.parent, exp.Dot) and top.parent.this is top:
            top = top.parent
            if not isinstance(top.expression, exp.Identifier):
                break
            dots.append(top)
        names = [*column.parts, *(dot.expression for dot in dots)]
        match = _owner_of(column, [part.name.lower() for part in names], qualified)
        if match is None:
            continue
        alias, taken = match
        rest = [part.copy() for part in names[taken:]]
        if not rest:
            continue
        first, last = names[0].meta.get("start"), names[taken - 1].meta.get("end")
        if first is not None and last is not None:
            edits.append(Edit(first, last + 1, NAME, alias))
        fresh: exp.Expr = exp.Column(this=rest[0], table=exp.to_identifier(alias, quoted=True))
        for part in rest[1:]:
            fresh = exp.Dot(this=fresh, expression=part)
        target = dots[-1] if dots else column
        target.replace(fresh)


def _owner_of(
    column: exp.Column, chain: list[str], qualified: dict[int, list[_Qualified]]
) -> tuple[str, int] | None:
    """Return (alias, number of parts) of the nearest table that qualifies the column."""
    select = column.find_ancestor(exp.Select)
    while select is not None:
        for table in qualified.get(id(select), ()):
            for length in range(min(len(table.parts), len(chain)), 1, -1):
                if list(table.parts[-length:]) == chain[:length]:
                    return table.alias, length
        select = select.find_ancestor(exp.Select)
    return None


# ------------------------------------------------------------------ files
# Paths and options are literals and are passed on as values; nothing here accesses a file.


_SUFFIXES: Final = word_map("""
.parquet = read_parquet
.parq = read_parquet
.csv = read_csv_auto
.tsv = read_csv_auto
.json = read_json_auto
.jsonl = read_json_auto
.ndjson = read_json_auto
""")

_COMMON: Final = "filename hive_partitioning hive_types hive_types_autocast union_by_name"
# The options of each kind of reader that are harmless.
_OPTIONS: Final = {
    "csv": """
all_varchar allow_quoted_nulls auto_detect auto_type_candidates column_names column_types columns
comment compression date_format dateformat decimal_separator delim delimiter dtypes encoding escape
force_not_null header ignore_errors names new_line normalize_names null null_padding nullstr
parallel quote sample_size sep skip strict_mode thousands timestamp_format timestampformat types
""",
    "parquet": "binary_as_string file_row_number",
    "json": """
auto_detect columns compression convert_strings_to_integers date_format dateformat
field_appearance_threshold format ignore_errors map_inference_threshold maximum_depth records
sample_size timestamp_format timestampformat
""",
}
_LITERALS: Final = (
    exp.Literal, exp.Boolean, exp.Null, exp.Neg, exp.Array, exp.Struct, exp.PropertyEQ,
    exp.Identifier, exp.Paren,
)  # fmt: skip


def reader_of(path: str) -> str | None:
    """Return the function that reads a file, also a compressed one, by its suffix; or None."""
    name = path.lower().removesuffix(".gz").removesuffix(".zst")
    return next((reader for suffix, reader in _SUFFIXES.items() if name.endswith(suffix)), None)


def take_files(tree: exp.Expr, edits: list[Edit]) -> tuple[FileReference, ...]:
    """Rewrite ``tree`` in place; return the files that it reads and add their edits to ``edits``.

    Raises SqlSyntaxError for a path that is not text, UnsupportedSqlError for an option that is
    not known to be harmless or whose value is not a literal.
    """
    found: list[FileReference] = []
    for table in list(tree.find_all(exp.Table)):
        inner = table.this
        if not isinstance(inner, exp.Func) or not is_file_function(function_name(inner)):
            continue
        reference = _reference(len(found), table, inner)
        found.append(reference)
        alias = inner.meta.get("alias") or function_name(inner)
        span = inner.meta.get("start"), inner.meta.get("stop")
        rename_table(table, reference.name, alias, span, edits)
    return tuple(found)


def _reference(index: int, table: exp.Table, inner: exp.Func) -> FileReference:
    name, offset = function_name(inner), offset_of(table)
    arguments = [each for each in (inner.args.get("this"),) if isinstance(each, exp.Expression)]
    if isinstance(inner, exp.Anonymous):
        arguments = []
    arguments += inner.expressions
    if not arguments:
        raise syntax_error(f"{name}() needs a path", offset, ("a text",))
    first = arguments[0]
    paths = first.expressions if isinstance(first, exp.Array) else [first]
    if not paths or not all(isinstance(p, exp.Literal) and p.is_string and p.this for p in paths):
        raise syntax_error(
            f"the path of {name}() is a text in single quotes, a list of them or a parameter",
            offset,
        )
    options = tuple(_option(name, each, offset) for each in arguments[1:])
    return FileReference(index, name, tuple(str(p.this) for p in paths), options, offset)


def _option(name: str, given: exp.Expr, offset: int | None) -> tuple[str, str]:
    kind = next((each for each in _OPTIONS if each in name), "json")
    named = isinstance(given, exp.Kwarg | exp.PropertyEQ | exp.EQ)
    option = given.this.name.lower() if named else given.sql(dialect="duckdb")
    if not named or option not in f"{_COMMON} {_OPTIONS[kind]}".split():
        raise unsupported(f"the option {option} of {name}()", offset)
    value = given.expression
    if not all(isinstance(node, _LITERALS) for node in value.walk()):
        raise unsupported(
            f"the option {option} of {name}()", offset, "its value has to be a literal"
        )
    return option, value.sql(dialect="duckdb", comments=False)


def read_file(table: exp.Table, text: str, *, files: bool) -> None:
    """Turn ``FROM 'data.parquet'`` into a call. Raises UnsupportedSqlError for other texts."""
    start = table.meta["start"]
    reader = reader_of(text)
    if reader is None or not files:
        hint = FILES_HINT if reader else FORMATS_HINT
        if _is_metadata(text) or "://" in text or not (reader or files):
            hint = f"a table's folder or its metadata file is read with iceberg_scan('{text}')"
        raise of_files(f"a file as a table: '{text}'", start, hint)
    function = exp.Anonymous(this=reader, expressions=[exp.Literal.string(text)])
    # As in DuckDB, the alias is the file's name up to its first dot.
    stem = text.rsplit("/", 1)[-1].partition(".")[0] or text
    function.meta.update(start=start, stop=table.parts[0].meta["end"] + 1, alias=stem)
    table.set("this", function)


def _is_metadata(path: str) -> bool:
    """True for a table's metadata file, which has the suffix of a JSON file."""
    return path.removesuffix(".gz").endswith(".metadata.json")
