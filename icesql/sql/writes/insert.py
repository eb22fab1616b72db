"""INSERT and COPY … FROM: statements that add rows, and clauses that select the rows to replace."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from icesql.quoting import literal
from icesql.sql.cursor import TokenCursor
from icesql.sql.edited_text import spliced
from icesql.sql.keywords import ROWS_WORDS, word_map, word_set
from icesql.sql.lexer import TEXT, Token, Tokens, span_of, word_at, words_at
from icesql.sql.positions import syntax_error, unsupported
from icesql.sql.statement import Query
from icesql.sql.trees import parts_of
from icesql.sql.writes.definitions import constant_query
from icesql.sql.writes.statements import Insert, PartitionValue, TableName
from icesql.sql.writes.update import read_target, refuse_endings

# ------------------------------------------------------------------ rows to replace


def read_partition(words: TokenCursor) -> tuple[PartitionValue, ...]:
    """Read ``PARTITION (p = 1, q)``: values for some columns, only names for others."""
    if not words.comes("PARTITION ("):
        return ()
    words.index += 1

    def entry(inner: TokenCursor) -> PartitionValue:
        at = inner.here
        name = inner.column()
        value = None
        if inner.skip("="):
            tokens = inner.until()
            if not tokens:
                raise inner.unexpected("a constant")
            value = constant_query(inner, tokens)
        return PartitionValue(name, value, at)

    return tuple(words.bracketed(entry))


def read_replaced(
    words: TokenCursor, table: TableName, after_table: int, *, by_name: bool
) -> tuple[Query, Query]:
    """Read the condition and the query of REPLACE WHERE, from the word WHERE on.

    The rows to delete are selected by the first query, as in DELETE. The second, of the new rows,
    has the condition as an additional column, so that a row that does not satisfy it is found.
    """
    words.need("WHERE")
    start = words.here
    tokens = _condition(words)
    if not tokens:
        raise words.unexpected("a condition")
    if words.token is None:
        raise words.unexpected("SELECT", "VALUES", "a query")
    sql = words.sql
    assert table.offset is not None
    name = sql[table.offset : after_table]
    stop = tokens[-1].stop
    condition = sql[start:stop]
    alias = _last_name(words, table)
    begin = f"SELECT _file, _pos FROM {name} AS {alias} WHERE "
    gone = words.parse.composed(*spliced(sql, start, stop, [(start, start, begin)]), again=True)
    if parts_of(gone.tree) != {"expressions", "from_", "where"}:
        raise unsupported("REPLACE WHERE with more than a condition", start, "use a subquery")
    union = "UNION ALL BY NAME" if by_name else "UNION ALL"
    first, end = words.token.start, words.tokens[-1].stop
    begin = f"SELECT *, ({condition}) FROM (SELECT * FROM {name} WHERE false {union} ("
    around = [(first, first, begin), (end, end, f")) AS {alias}")]
    return gone, words.parse.composed(*spliced(sql, first, end, around))


def _last_name(words: TokenCursor, table: TableName) -> str:
    """Return the last part of the table's name, quoted as the user did."""
    first = next(n for n, each in enumerate(words.tokens) if each.start == table.offset)
    last = words.tokens[first + 2 * (len(table.parts) - 1)]
    return words.sql[last.start : last.stop]


def _condition(words: TokenCursor) -> Tokens:
    """Return the tokens before the query, which begins outside brackets and CASE."""
    start, depth = words.index, 0
    while (token := words.token) is not None:
        text = words.peek()
        if depth == 0 and text in ROWS_WORDS and text != "(" and not _is_inside(words):
            break
        if depth == 0 and text == "(" and words.index > start and _is_query(words):
            break
        depth += (text in ("(", "[")) - (text in (")", "]"))
        words.index += 1
        if depth < 0:
            raise syntax_error('unexpected ")"', token, ())
    return words.tokens[start : words.index]


def _is_inside(words: TokenCursor) -> bool:
    """True if such a word belongs to the condition: IS DISTINCT FROM, TIMESTAMP WITH TIME ZONE."""
    before = words.tokens[words.index - 1].word if words.index else ""
    return (words.peek() == "FROM" and before.endswith("DISTINCT")) or (
        words.peek() == "WITH" and words.peek(1) in ("TIME", "LOCAL")
    )


def _is_query(words: TokenCursor) -> bool:
    """True if the next bracket contains the query, not a part of the condition."""
    before = words.tokens[words.index - 1].word
    ahead = 1
    while words.peek(ahead) == "(":
        ahead += 1
    return words.peek(ahead) in ROWS_WORDS and before not in _BEFORE_SUBQUERY


_BEFORE_SUBQUERY = word_set(
    "IN EXISTS ANY ALL SOME AND OR NOT = < > <= >= <> != + - * / LIKE BETWEEN IS ARRAY"
)


# ------------------------------------------------------------------ INSERT


_READERS: Final = {
    "parquet": "read_parquet",
    "csv": "read_csv",
    "tsv": "read_csv",
    "json": "read_json",
}
# Options of COPY … FROM, and their names in DuckDB's file readers.
_OPTIONS: Final = word_map("""
delimiter = delim
delim = delim
sep = delim
header = header
quote = quote
escape = escape
null = nullstr
nullstr = nullstr
dateformat = dateformat
timestampformat = timestampformat
skip = skip
compression = compression
encoding = encoding
""")

# The option of COPY … FROM that means WITH SCHEMA EVOLUTION.
_EVOLVES: Final = "merge_schema"


def read_insert(words: TokenCursor) -> Insert:
    """Read the statement after INSERT."""
    at = words.here
    if words.peek() == "OR":
        raise unsupported(f"INSERT OR {words.peek(1)}", at, "use MERGE")
    evolves = read_evolution(words)
    overwrite = words.skip("OVERWRITE")
    into = words.skip("INTO")
    if not overwrite and not into:
        raise words.unexpected("INTO", "OVERWRITE")
    words.skip("TABLE")
    table = read_target(words)
    after_table = words.tokens[words.index - 1].stop
    partition = read_partition(words)
    columns: tuple[str, ...] | None = None
    if words.peek() == "(" and words.peek(1) not in ROWS_WORDS:
        columns = _column_list(words)
    by_name = words.skip("BY NAME")
    if not by_name:
        words.skip("BY POSITION")
    if by_name and columns is not None:
        raise syntax_error("a column list and BY NAME exclude each other", words.here)
    if words.comes("REPLACE WHERE"):
        if overwrite or partition or columns is not None:
            what = "OVERWRITE" if overwrite else "PARTITION" if partition else "a column list"
            raise unsupported(f"REPLACE WHERE with {what}", words.here, "INSERT INTO t REPLACE …")
        if evolves:
            raise unsupported(
                "REPLACE WHERE with SCHEMA EVOLUTION", at, "ALTER TABLE … ADD COLUMN comes first"
            )
        words.index += 1
        refuse_endings(words.rest)
        gone, query = read_replaced(words, table, after_table, by_name=by_name)
        return Insert(table, query, None, by_name, replaced=gone)
    if words.peek() == "DEFAULT":
        raise unsupported("DEFAULT VALUES", words.here, "name the columns that have no default")
    if words.peek() not in (*ROWS_WORDS, "PIVOT", "UNPIVOT"):
        raise words.unexpected("SELECT", "VALUES", "a query")
    tokens = words.rest
    refuse_endings(tokens)
    defaults = _defaults(words)
    if defaults and evolves:
        raise unsupported("DEFAULT with SCHEMA EVOLUTION", words.here, "leave the column out")
    if defaults:
        edits = [(each.start, each.stop, "NULL") for each in defaults.values()]
        query = words.parse.composed(*spliced(words.sql, *span_of(tokens), edits))
    else:
        query = words.parse.any_query(tokens)
    return Insert(
        table,
        query,
        columns,
        by_name,
        overwrite,
        partition=partition,
        evolves=evolves,
        defaults=frozenset(defaults),
    )


def _defaults(words: TokenCursor) -> dict[tuple[int, int], Token]:
    """Return the DEFAULTs in VALUES by their positions (row, column), from 0."""
    tokens, found = words.rest, dict[tuple[int, int], Token]()
    if words.peek() != "VALUES":
        return found
    depth, row, column = 0, -1, 0
    for before, token, after in zip(tokens, tokens[1:], [*tokens[2:], None], strict=False):
        kind, outside = token.word, depth == 0
        depth += (kind == "(") - (kind == ")")
        if outside and kind == "(":
            row, column = row + 1, 0
        elif outside and kind != ",":
            return {}  # not a plain list of rows
        elif depth == 1 and kind == ",":
            column += 1
        alone = before.text in ("(", ",") and after is not None and after.text in (",", ")")
        if depth == 1 and alone and token.word == "DEFAULT":
            found[row, column] = token
    return found


def read_evolution(words: TokenCursor) -> bool:
    """True if WITH SCHEMA EVOLUTION comes next. Raises SqlSyntaxError for another WITH."""
    if not words.skip("WITH"):
        return False
    words.need("SCHEMA EVOLUTION")
    return True


def _column_list(words: TokenCursor) -> tuple[str, ...]:
    return tuple(words.bracketed(lambda inner: inner.identifier("a column")))


# ------------------------------------------------------------------ COPY


def read_copy_from(words: TokenCursor) -> Insert:
    """Read the statement after COPY: ``table [(columns)] FROM 'file' [(options)]``."""
    table = read_target(words)
    columns = _column_list(words) if words.peek() == "(" else None
    words.need("FROM")
    path_token = words.token
    path = words.text("the path of a file")
    assert path_token is not None
    words.skip("WITH")
    options = _copy_options(words) if words.peek() == "(" else {}
    words.end()
    evolves = options.pop(_EVOLVES, "false") == "true"
    if evolves and columns is not None:
        raise syntax_error("a column list and MERGE_SCHEMA exclude each other", path_token)
    from icesql.sql.references import reader_of, take_files

    form = options.pop("format", None)
    if form and form.lower() not in _READERS:
        raise unsupported(f"COPY … FROM in the format {form}", path_token, "csv, json or parquet")
    reader = _READERS[form.lower()] if form else reader_of(path)
    if reader is None:
        raise unsupported("a file whose name says no format", path_token, "add (FORMAT csv)")
    reader = reader.removesuffix("_auto")
    begun = words_at(f"SELECT * FROM {reader} (", path_token.start)
    tokens = [*begun, path_token, word_at(")", path_token.start)]
    query = words.parse.any_query(tokens)
    # The query was composed here, whatever the dialect of the statement is.
    files = query.files or take_files(query.tree, [])
    query = replace(query, files=files, refused=None, translated="")
    (file,) = files
    given = tuple((_OPTIONS[name], value) for name, value in options.items())
    # The composed words are not in the user's text.
    query = replace(query, user_text=None, spark=None)
    by_name = evolves or reader == "read_json"
    copied = replace(file, options=given)
    return Insert(table, query, columns, by_name, copied=copied, evolves=evolves)


def _copy_options(words: TokenCursor) -> dict[str, str]:
    inner = words.in_brackets()
    found: dict[str, str] = {}
    while True:
        at = inner.here
        name = inner.identifier("an option").lower()
        inner.skip("=")
        token = inner.token
        if token is None or inner.peek() == ",":
            value = "true"
        else:
            inner.index += 1
            is_text = token.kind == TEXT
            value = literal(token.text) if is_text else str(token.text)
        if name == "format":
            found[name] = token.text if token is not None else ""
        elif name == _EVOLVES:
            found[name] = value.strip("'").lower()
            if found[name] not in ("true", "false"):
                raise syntax_error("MERGE_SCHEMA is true or false", at)
        elif name in _OPTIONS:
            if not (value.startswith("'") or value.lower() in ("true", "false") or value.isdigit()):
                raise unsupported(f"the option {name.upper()} = {value}", at, "write it in quotes")
            found[name] = value
        else:
            raise unsupported(f"the option {name.upper()} of COPY … FROM", at)
        if not inner.skip(","):
            break
    inner.end()
    return found
