"""CREATE and DROP of tables, with all their clauses, of namespaces and of views."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from msgspec import Struct, structs

from icesql.errors import Error, nearest
from icesql.sql.cursor import TokenCursor
from icesql.sql.edited_text import spliced
from icesql.sql.keywords import QUERY_WORDS
from icesql.sql.lexer import reading, tokenize
from icesql.sql.positions import syntax_error, unsupported
from icesql.sql.statement import Query, Write
from icesql.sql.table_name import Parts
from icesql.sql.writes.definitions import (
    read_column,
    read_keys,
    read_name,
    read_partitioning,
    read_properties,
    read_property,
    read_sort_term,
    read_term,
)
from icesql.sql.writes.statements import (
    ColumnDefinition,
    CreateNamespace,
    CreateTable,
    DropNamespace,
    DropTable,
    PartitionTerm,
    Properties,
    SortTerm,
    TableName,
)

Term = TypeVar("Term", PartitionTerm, SortTerm)
NAMESPACES: Final = ("SCHEMA", "NAMESPACE", "DATABASE")


def read_create(words: TokenCursor, *, replaces: bool = False) -> Write | None:
    """Read the statement after CREATE; None if it creates neither a table nor a namespace.

    ``replaces``: the first word was REPLACE.
    """
    replace = replaces or words.skip("OR REPLACE")
    if not replace and words.peek() in NAMESPACES:
        return _create_namespace(words)
    words.skip("ICEBERG")
    if words.comes("EXTERNAL TABLE"):
        raise unsupported("CREATE EXTERNAL TABLE", words.here, "CREATE TABLE … LOCATION 'folder'")
    if not words.skip("TABLE"):
        return None
    unless = words.skip("IF NOT EXISTS")
    if unless and replace:
        raise syntax_error("OR REPLACE and IF NOT EXISTS exclude each other", words.here)
    table = read_name(words)
    like: TableName | None = None
    columns: tuple[ColumnDefinition, ...] = ()
    if words.comes("LIKE") or words.comes("( LIKE"):
        like = _like(words)
    elif words.peek() == "(" and words.peek(1) not in QUERY_WORDS:
        columns = tuple(words.bracketed(read_column))
    clauses, at = Clauses(), words.here
    while words.token is not None and (like or words.peek() not in ("AS", "SELECT", "FROM", "(")):
        _read_clause(words, clauses)
    if like and (clauses.partitioning or clauses.ordering):
        raise unsupported("another layout with LIKE", at, "ALTER TABLE … SET PARTITIONED BY")
    query = None
    if words.token is not None:
        words.skip("AS")
        if words.token is None:
            raise words.unexpected("a query")
        query = words.parse.any_query(words.rest)
    if not (columns or query or like):
        raise words.unexpected("(", "AS")
    return CreateTable(
        table,
        columns,
        clauses.partitioning or (),
        clauses.ordering or (),
        tuple(clauses.properties),
        clauses.location,
        query,
        unless,
        replace,
        like,
    )


def _like(words: TokenCursor) -> TableName:
    """Read ``LIKE s``, or ``(LIKE s INCLUDING PROPERTIES)``."""
    in_brackets = words.skip("(")
    words.need("LIKE")
    like = read_name(words)
    if in_brackets:
        if words.skip("INCLUDING"):
            words.need("PROPERTIES")
        elif words.peek() == "EXCLUDING":
            raise unsupported("EXCLUDING PROPERTIES", words.here, "list the columns")
        words.need(")")
    return like


class Clauses(Struct):
    """The clauses of a table other than its columns."""

    unset: list[str] = []
    partitioning: tuple[PartitionTerm, ...] | None = None
    ordering: tuple[SortTerm, ...] | None = None
    properties: list[tuple[str, str]] = []
    location: str | None = None


def _read_clause(words: TokenCursor, clauses: Clauses) -> None:
    at = words.here
    if words.skip("USING"):
        engine = words.identifier()
        if engine.lower() != "iceberg":
            raise unsupported(f"USING {engine}", at, "tables are Iceberg tables")
    elif words.skip("PARTITIONED BY") or words.skip("PARTITION BY"):
        clauses.partitioning = read_partitioning(words)
    elif words.skip("SORTED BY") or words.skip("ORDER BY") or words.skip("ORDERED BY"):
        clauses.ordering = tuple(words.bracketed(read_sort_term))
    elif words.skip("LOCATION"):
        clauses.location = words.text()
    elif words.skip("COMMENT"):
        clauses.properties.append(("comment", words.text()))
    elif words.skip("TBLPROPERTIES"):
        clauses.properties += read_properties(words)
    elif words.comes("WITH ("):
        words.index += 1
        _read_with(words.in_brackets(), clauses, is_new=True)
    elif words.peek() in (
        "CLUSTERED", "CLUSTER", "OPTIONS", "STORED", "ROW", "DISTRIBUTED",
    ):  # fmt: skip
        raise unsupported(words.peek(), at, "use PARTITIONED BY, LOCATION, TBLPROPERTIES or WITH")
    else:
        raise words.unexpected("PARTITIONED BY", "LOCATION", "TBLPROPERTIES", "WITH", "AS")


def read_clauses(words: TokenCursor) -> Clauses:
    """Read Trino's properties, to the end of the tokens."""
    found = Clauses()
    _read_with(words, found)
    return found


def _read_with(words: TokenCursor, clauses: Clauses, *, is_new: bool = False) -> None:
    """Read DuckDB's ``WITH ('key' = 'value')``, or Trino's ``partitioning`` and so on."""
    codec = None
    while True:
        at = words.here
        match words.peek():
            case "PARTITIONING" | "SORTED_BY" as word:
                words.index += 1
                words.need("=")
                texts = [] if words.skip("DEFAULT") else _array(words)
                if word == "PARTITIONING":
                    clauses.partitioning = tuple(
                        _term(text, at, read_term, "a partition", "day(ts)", "bucket(id, 16)")
                        for text in texts
                    )
                else:
                    clauses.ordering = tuple(
                        _term(text, at, read_sort_term, "a sort column", "id DESC NULLS LAST")
                        for text in texts
                    )
            case "PARQUET_BLOOM_FILTER_COLUMNS" | "ORC_BLOOM_FILTER_COLUMNS" as word:
                words.index += 1
                words.need("=")
                if words.peek() == "DEFAULT":
                    raise unsupported(f"{word.lower()} = DEFAULT", at, "UNSET TBLPROPERTIES (…)")
                clauses.properties += _bloom_filters(word, _array(words))
            case "EXTRA_PROPERTIES":
                words.index += 1
                words.need("=")
                clauses.properties += _map(words)
            case word if word and words.peek(1) == "=":
                if words.peek(2) == "DEFAULT":
                    if word == "FORMAT_VERSION":
                        raise unsupported("format_version = DEFAULT", at, "write 2 or 3")
                    words.index += 3
                    clauses.unset.append(_property_of_trino(word, at))
                else:
                    _, value = read_property(words)
                    if word == "LOCATION":
                        clauses.location = value
                    elif word == "COMPRESSION_CODEC" and is_new:
                        codec = value.upper(), at
                    else:
                        value = value.lower() if word == "FORMAT" else value
                        clauses.properties.append((_property_of_trino(word, at), value))
            case _:
                clauses.properties.append(read_property(words))
        if not words.skip(","):
            break
    words.end()
    if codec is not None:
        form = dict(clauses.properties).get("write.format.default", "parquet")
        clauses.properties.append(_codec_of_trino(form, *codec))


def _codec_of_trino(form: str, codec: str, at: int) -> tuple[str, str]:
    """Return Iceberg's property for a codec, which depends on the format of the new table."""
    is_orc = form == "orc"
    allowed = ["NONE", "SNAPPY", "ZSTD", "GZIP", *(["LZ4"] if is_orc else [])]
    if codec not in allowed:
        what = f"compression_codec = '{codec}' for {form} files"
        raise unsupported(what, at, f"it can be {', '.join(allowed)}")
    own = {"NONE": "none", "GZIP": "zlib"} if is_orc else {"NONE": "uncompressed"}
    return f"write.{form}.compression-codec", own.get(codec, codec.lower())


# Iceberg's properties by Trino's names; this form of the statement accepts no others.
_OF_TRINO: Final = {
    "FORMAT": "write.format.default",
    "FORMAT_VERSION": "format-version",
    "MAX_COMMIT_RETRY": "commit.retry.num-retries",
    "DELETE_AFTER_COMMIT_ENABLED": "write.metadata.delete-after-commit.enabled",
    "MAX_PREVIOUS_VERSIONS": "write.metadata.previous-versions-max",
    "OBJECT_STORE_LAYOUT_ENABLED": "write.object-storage.enabled",
    "DATA_LOCATION": "write.data.path",
    "ORC_BLOOM_FILTER_FPP": "write.orc.bloom.filter.fpp",
    "COMMENT": "comment",
}


def _property_of_trino(word: str, at: int) -> str:
    found = _OF_TRINO.get(word)
    if found is not None:
        return found
    name = word.lower()
    if word == "COMPRESSION_CODEC":
        hint = "name the format: \"write.parquet.compression-codec\" = 'zstd'"
    else:
        meant = nearest(name, map(str.lower, _OF_TRINO), form="did you mean {}? ")
        hint = f'{meant}in quotes it is a property of that very name: "{name}" = …'
    raise unsupported(f"the table property {name}", at, hint)


def _bloom_filters(word: str, columns: Sequence[str]) -> list[tuple[str, str]]:
    if word.startswith("ORC"):
        return [("write.orc.bloom.filter.columns", ",".join(columns))]
    return [(f"write.parquet.bloom-filter-enabled.column.{each}", "true") for each in columns]


def _map(words: TokenCursor) -> list[tuple[str, str]]:
    """Read ``MAP(ARRAY['key'], ARRAY['value'])``."""
    at = words.here
    words.need("MAP")
    words.need("(")
    keys = _array(words)
    words.need(",")
    values = _array(words)
    words.need(")")
    if len(keys) != len(values):
        raise syntax_error("a MAP has as many values as keys", at)
    return list(zip(keys, values, strict=True))


def _array(words: TokenCursor) -> list[str]:
    words.need("ARRAY")
    words.need("[")
    texts = []
    while not words.skip("]"):
        texts.append(words.text())
        words.skip(",")
    return texts


def _term(
    text: str, at: int, read: Callable[[TokenCursor], Term], what: str, *examples: str
) -> Term:
    """Read a term of Trino's ``ARRAY['day(ts)', 'bucket(id, 16)', 'c']``."""
    try:
        words = TokenCursor(tokenize(text, reading(None)), text)
        term = read(words)
        words.end()
    except (Error, IndexError):  # without a token there is no place for an error
        raise syntax_error(f'"{text}" is not {what}', at, examples) from None
    return structs.replace(term, offset=at)


def _create_namespace(words: TokenCursor) -> CreateNamespace:
    words.index += 1
    unless = words.skip("IF NOT EXISTS")
    parts = words.name("a namespace")
    properties: list[tuple[str, str]] = []
    while words.token is not None:
        if words.skip("COMMENT"):
            properties.append(("comment", words.text()))
        elif words.skip("LOCATION"):
            properties.append(("location", words.text()))
        elif words.skip("WITH DBPROPERTIES") or words.skip("WITH PROPERTIES"):
            properties += read_properties(words)
        else:
            raise words.unexpected("COMMENT", "LOCATION", "the end of the statement")
    return CreateNamespace(parts, unless, tuple(properties))


def read_drop(words: TokenCursor) -> Write | None:
    """Read the statement after DROP; None if it drops neither a table nor a namespace."""
    namespace = words.peek() in NAMESPACES
    if not namespace and words.peek() != "TABLE":
        return None
    words.index += 1
    exists = words.skip("IF EXISTS")
    at = words.here
    parts = words.name()
    if words.peek() == ",":
        raise unsupported("DROP of several tables", words.here, "one statement for each")
    if words.skip("CASCADE"):
        raise unsupported("DROP … CASCADE", at, "drop its tables first")
    if namespace:
        words.skip("RESTRICT")
        words.end()
        return DropNamespace(parts, exists)
    purge = words.skip("PURGE")
    words.end()
    return DropTable(TableName(parts, at), exists, purge)


# ------------------------------------------------------------------ views


class CreateStoredView(Write):
    """CREATE VIEW: ``text`` is its SQL; ``query`` returns its columns and no rows.

    ``columns`` are new names with their comments, () without a list. ``alters``: ALTER VIEW … AS,
    of an existing view; ``lenient``: or of none, IF EXISTS.
    """

    view: TableName
    text: str
    query: Query
    columns: tuple[tuple[str, str | None], ...] = ()
    properties: Properties = ()
    if_not_exists: bool = False
    or_replace: bool = False
    alters: bool = False
    lenient: bool = False


class AlterStoredView(Write):
    """ALTER VIEW: rename it, or set and remove properties.

    ``if_exists``: properties to be removed may be missing; ``lenient``: the view may be.
    """

    view: TableName
    new: Parts | None = None
    set: Properties = ()
    unset: tuple[str, ...] = ()
    if_exists: bool = False
    lenient: bool = False


class DropStoredView(Write):
    """DROP VIEW."""

    view: TableName
    if_exists: bool = False


def read_create_view(words: TokenCursor) -> CreateStoredView | None:
    """Read the statement after CREATE; None if it creates no view."""
    start = words.index
    replaces = words.skip("OR REPLACE")
    if not words.skip("VIEW"):
        words.index = start
        return None
    unless = words.skip("IF NOT EXISTS")
    if unless and replaces:
        raise syntax_error("OR REPLACE and IF NOT EXISTS exclude each other", words.here)
    view = read_name(words, "a view")
    columns = _columns(words) if words.peek() == "(" else ()
    properties: list[tuple[str, str]] = []
    while words.token is not None and words.peek() != "AS":
        here = words.here
        if words.skip("COMMENT"):
            properties.append(("comment", words.text()))
        elif words.skip("TBLPROPERTIES"):
            properties += read_properties(words)
        elif words.peek() in ("WITH", "SECURITY"):
            raise unsupported(f"{words.peek()} {words.peek(1)} of a view", here, "leave it out")
        else:
            raise words.unexpected("AS", "COMMENT", "TBLPROPERTIES")
    words.need("AS")
    text, query = _query(words)
    return CreateStoredView(view, text, query, columns, tuple(properties), unless, replaces)


def _query(words: TokenCursor) -> tuple[str, Query]:
    """Return the text of a view, and the query of its columns."""
    if words.token is None:
        raise words.unexpected("a query")
    words.balanced()
    first = words.token.start
    text = words.written(words.index, len(words.tokens))
    end = first + len(text)
    around = [(first, first, "SELECT * FROM ("), (end, end, "\n) AS v LIMIT 0")]
    alone = words.parse.alone("a view")
    return text, alone.composed(*spliced(words.sql, first, end, around))


def read_alter_view(words: TokenCursor) -> Write:
    """Read the statement after ALTER VIEW."""
    lenient = words.skip("IF EXISTS")
    view = read_name(words, "a view")
    if words.skip("AS"):
        text, query = _query(words)
        return CreateStoredView(view, text, query, or_replace=True, alters=True, lenient=lenient)
    if words.skip("RENAME TO"):
        found = AlterStoredView(view, new=words.name("a view"), lenient=lenient)
    elif words.skip("SET TBLPROPERTIES"):
        found = AlterStoredView(view, set=read_properties(words), lenient=lenient)
    elif words.skip("UNSET TBLPROPERTIES"):
        exists = words.skip("IF EXISTS")
        found = AlterStoredView(view, unset=read_keys(words), if_exists=exists, lenient=lenient)
    elif words.peek() == "WITH":
        raise unsupported(f"WITH {words.peek(1)} of a view", words.here, "leave it out")
    else:
        raise words.unexpected("AS", "SET TBLPROPERTIES", "UNSET TBLPROPERTIES", "RENAME TO")
    words.end()
    return found


def read_drop_view(words: TokenCursor) -> DropStoredView | None:
    """Read the statement after DROP; None if it drops no view."""
    if not words.skip("VIEW"):
        return None
    exists = words.skip("IF EXISTS")
    view = read_name(words, "a view")
    words.end()
    return DropStoredView(view, exists)


def _columns(words: TokenCursor) -> tuple[tuple[str, str | None], ...]:

    def column(inner: TokenCursor) -> tuple[str, str | None]:
        name = inner.identifier("a column")
        return name, inner.text() if inner.skip("COMMENT") else None

    return tuple(words.bracketed(column))
