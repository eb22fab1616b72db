"""INSERT and COPY … FROM: statements that add rows."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from icesql.quoting import literal
from icesql.sql.cursor import TokenCursor
from icesql.sql.keywords import ROWS_WORDS, word_map
from icesql.sql.lexer import TEXT, Token, span_of, word_at, words_at
from icesql.sql.positions import syntax_error, unsupported
from icesql.sql.sources import spliced
from icesql.sql.writes.changes.conditions import read_target, refuse_endings
from icesql.sql.writes.overwrites import read_partition, read_replaced
from icesql.sql.writes.statements import Insert

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
    from icesql.sql.files import reader_of, take_files

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
