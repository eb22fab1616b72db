"""ALTER TABLE and its like: columns, comments, layout, branches and tags."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, cast

from msgspec.structs import replace

from icesql.frozen import Frozen
from icesql.sql.cursor import TokenCursor
from icesql.sql.lexer import words_at
from icesql.sql.positions import syntax_error, unsupported
from icesql.sql.statement import Write
from icesql.sql.table_name import Parts
from icesql.sql.time_travel import TimeTravel, VersionText
from icesql.sql.writes.create import read_clauses
from icesql.sql.writes.definitions import (
    constant_query,
    read_column,
    read_name,
    read_ordering,
    read_partitioning,
    read_sort_term,
    read_term,
    read_type,
)
from icesql.sql.writes.statements import (
    AlterColumns,
    ColumnChange,
    ColumnDefinition,
    PartitionTerm,
    Properties,
    SetProperties,
    SortTerm,
    TableName,
    TypeName,
)

_PLAIN: Final = {
    "DROP NOT NULL": "optional", "SET NOT NULL": "required", "DROP DEFAULT": "default",
}  # fmt: skip


def read_column_changes(words: TokenCursor) -> tuple[ColumnChange, ...] | None:
    """Read column changes after the table's name; None if it is not a change of a column."""
    if words.peek() == "ADD" and words.peek(1) not in ("PARTITION", "CONSTRAINT"):
        words.index += 1
        return _several(words, lambda: _add(words))
    if words.peek() == "DROP" and words.peek(1) in ("COLUMN", "COLUMNS"):
        words.index += 1
        return _several(words, lambda: ColumnChange("drop", words.name("a column")))
    if words.skip("RENAME COLUMN"):
        exists = words.skip("IF EXISTS")
        path = words.name("a column")
        words.need("TO")
        at = words.here
        new = words.identifier("a column")
        return (ColumnChange("rename", path, text=new, lenient=exists, offset=at),)
    if words.peek() in ("ALTER", "CHANGE"):
        words.index += 1
        words.skip("COLUMN")
        exists = words.skip("IF EXISTS")
        return (replace(_alter(words), lenient=exists),)
    return None


def read_comment(words: TokenCursor) -> Write:
    """Read COMMENT ON: ``TABLE t IS 'x'``, ``COLUMN t.a IS 'x'``; NULL removes the comment."""
    if words.peek() not in ("TABLE", "COLUMN"):
        raise words.unexpected("TABLE", "COLUMN")
    is_column = words.peek() == "COLUMN"
    words.index += 1
    at = words.here
    *above, last = words.name("a column" if is_column else "a table")
    if is_column and not above:
        raise syntax_error("a column of no table", at, ("table.column",))
    words.need("IS")
    text = None if words.skip("NULL") else words.text()
    words.end()
    if is_column:
        change = ColumnChange("comment", (last,), text=text or "")
        return AlterColumns(TableName(tuple(above), at), (change,))
    table = TableName((*above, last), at)
    if text is None:
        return SetProperties(table, unset=("comment",), if_exists=True)
    return SetProperties(table, (("comment", text),))


def _several(words: TokenCursor, read: Callable[[], ColumnChange]) -> tuple[ColumnChange, ...]:
    if not words.skip("COLUMNS"):
        words.skip("COLUMN")
    of_all = _unless(words)
    in_brackets = words.skip("(")

    def change() -> ColumnChange:
        lenient = _unless(words) or of_all
        return replace(read(), lenient=lenient)

    return tuple(words.listed(change, ")" if in_brackets else ""))


def _unless(words: TokenCursor) -> bool:
    return words.skip("IF NOT EXISTS") or words.skip("IF EXISTS")


def _add(words: TokenCursor) -> ColumnChange:
    path = words.name("a column")
    words.index -= 1  # the definition begins with the last name
    column = read_column(words)
    place, sibling = _position(words)
    at = column.offset
    return ColumnChange("add", path, column, place=place, sibling=sibling, offset=at)


def _position(words: TokenCursor) -> tuple[str, str]:
    if words.skip("FIRST"):
        return "first", ""
    for word in ("AFTER", "BEFORE"):
        if words.skip(word):
            return word.lower(), words.identifier("a column")
    return "", ""


def _alter(words: TokenCursor) -> ColumnChange:
    path = words.name("a column")
    at = words.here
    if words.skip("TYPE") or words.skip("SET DATA TYPE"):
        return ColumnChange("type", path, ColumnDefinition(path[-1], read_type(words)))
    for phrase, kind in _PLAIN.items():
        if words.skip(phrase):
            return ColumnChange(kind, path)
    if words.skip("SET DEFAULT"):
        query = constant_query(words, words.until())
        shape = ColumnDefinition(path[-1], TypeName(""), default=query, offset=at)
        return ColumnChange("default", path, shape)
    if words.skip("COMMENT"):
        return ColumnChange("comment", path, text=words.text())
    place, sibling = _position(words)
    if place:
        return ColumnChange("move", path, place=place, sibling=sibling)
    raise words.unexpected("TYPE", "SET DEFAULT", "DROP NOT NULL", "COMMENT", "FIRST", "AFTER")


# ------------------------------------------------------------------ layout
# Of new files. Spark's ``ADD PARTITION FIELD`` and ``WRITE ORDERED BY``, DuckDB's ``SET PARTITIONED
# BY`` and ``SET SORTED BY``, Trino's ``SET PROPERTIES partitioning = …``, Hive's ``SET PARTITION
# SPEC``.


Distribution = Literal["none", "hash", "range"]


class ChangeLayout(Write):
    """Changes of one table's layout in one commit.

    ``partitioning`` and ``ordering`` replace the whole, None leaves it unchanged; ``add`` and
    ``drop`` are single partition fields, those to drop by name or transform. ``distribution`` is
    the ``write.distribution-mode`` that goes with an order. ``lenient``: skip fields of ``add``
    that exist and fields of ``drop`` that do not.
    """

    table: TableName
    partitioning: tuple[PartitionTerm, ...] | None = None
    add: tuple[PartitionTerm, ...] = ()
    drop: tuple[PartitionTerm, ...] = ()
    ordering: tuple[SortTerm, ...] | None = None
    distribution: Distribution | None = None
    properties: Properties = ()
    unset: tuple[str, ...] = ()
    lenient: bool = False


class SetIdentifierFields(Write):
    """SET or DROP IDENTIFIER FIELDS: the columns that identify a row, which is not enforced."""

    table: TableName
    paths: tuple[Parts, ...]
    drop: bool = False


def read_layout(words: TokenCursor, table: TableName) -> Write | None:
    """Read the layout change after ALTER TABLE and its name; None if it is none."""
    if words.skip("ADD PARTITION FIELD"):
        unless = words.skip("IF NOT EXISTS")
        return ChangeLayout(table, add=(_named_term(words),), lenient=unless)
    if words.skip("DROP PARTITION FIELD"):
        exists = words.skip("IF EXISTS")
        return ChangeLayout(table, drop=(read_term(words),), lenient=exists)
    if words.skip("REPLACE PARTITION FIELD"):
        gone = read_term(words)
        words.need("WITH")
        return ChangeLayout(table, add=(_named_term(words),), drop=(gone,))
    if words.skip("SET PARTITIONED BY") or words.skip("SET PARTITION SPEC"):
        return ChangeLayout(table, partitioning=read_partitioning(words))
    if words.skip("RESET PARTITIONED BY"):
        return ChangeLayout(table, partitioning=())
    if words.skip("SET SORTED BY"):
        return ChangeLayout(table, ordering=tuple(words.bracketed(read_sort_term)))
    if words.skip("RESET SORTED BY"):
        return ChangeLayout(table, ordering=())
    if words.peek() == "WRITE" and words.peek(1) in _WRITE:
        words.index += 1
        return _write_order(words, table)
    if words.peek() in ("SET", "DROP") and words.peek(1) == "IDENTIFIER":
        drop = words.peek() == "DROP"
        words.index += 1
        words.need("IDENTIFIER FIELDS")
        paths = words.listed(lambda: words.name("a column"))
        return SetIdentifierFields(table, tuple(paths), drop)
    if words.peek(2) != "(" and words.skip("SET PROPERTIES"):
        return _of_trino(words, table)
    return None


_WRITE = ("ORDERED", "UNORDERED", "LOCALLY", "DISTRIBUTED")


def _named_term(words: TokenCursor) -> PartitionTerm:
    term = read_term(words)
    return replace(term, name=words.identifier("a name")) if words.skip("AS") else term


def _write_order(words: TokenCursor, table: TableName) -> ChangeLayout:
    """Read ``[DISTRIBUTED BY PARTITION] [[LOCALLY] ORDERED BY … | UNORDERED]``, in any order."""
    distribution: Distribution | None = None
    ordering: tuple[SortTerm, ...] | None = None
    by_partition = False
    while words.token is not None:
        if not by_partition and words.skip("DISTRIBUTED BY PARTITION"):
            by_partition = True
        elif ordering is None and words.skip("UNORDERED"):
            ordering, distribution = (), "none"
        elif ordering is None and words.skip("LOCALLY"):
            words.need("ORDERED BY")
            ordering, distribution = _terms(words), "none"
        elif ordering is None and words.skip("ORDERED BY"):
            ordering, distribution = _terms(words), "range"
        else:
            raise words.unexpected("ORDERED BY", "UNORDERED", "DISTRIBUTED BY PARTITION")
    if by_partition:
        distribution = "hash"
    return ChangeLayout(table, ordering=ordering or (), distribution=distribution)


def _terms(words: TokenCursor) -> tuple[SortTerm, ...]:
    if words.peek() != "(":
        return read_ordering(words)
    return tuple(words.bracketed(read_sort_term))


def _of_trino(words: TokenCursor, table: TableName) -> ChangeLayout:
    """Read ``partitioning = ARRAY['day(ts)'], sorted_by = ARRAY['id'], format_version = 3``."""
    at = words.here
    found = read_clauses(words)
    if found.location is not None:
        raise unsupported("a new location of a table", at, "CREATE TABLE … AS SELECT")
    return ChangeLayout(
        table,
        found.partitioning,
        ordering=found.ordering,
        properties=tuple(found.properties),
        unset=tuple(found.unset),
    )


# ------------------------------------------------------------------ branches and tags
# ``ALTER TABLE t CREATE BRANCH b …`` is Spark's and Hive's, ``CREATE BRANCH b IN TABLE t`` Trino's.


Kind = Literal["branch", "tag"]

KINDS: Final = ("BRANCH", "TAG")
_UNIT_MS: Final = {"DAY": 86_400_000, "HOUR": 3_600_000, "MINUTE": 60_000}


class Retention(Frozen):
    """How long to keep a ref and its snapshots, in milliseconds; None: the table's setting."""

    max_ref_age_ms: int | None = None
    min_snapshots_to_keep: int | None = None
    max_snapshot_age_ms: int | None = None


class CreateRef(Write):
    """CREATE or REPLACE of a branch or tag; ``travel`` None is the head of main.

    ``must_exist`` is REPLACE without CREATE.
    """

    table: TableName
    kind: Kind
    name: str
    travel: TimeTravel | None = None
    if_exists: Literal["fail", "keep", "replace"] = "fail"
    must_exist: bool = False
    retention: Retention = Retention()


class DropRef(Write):
    """DROP of a branch or tag."""

    table: TableName
    kind: Kind
    name: str
    if_exists: bool = False


class FastForward(Write):
    """Move a branch to the head of another ref."""

    table: TableName
    branch: str
    to: str


def read_ref_change(words: TokenCursor, table: TableName) -> Write | None:
    """Read the ref change after ALTER TABLE and its name; None if it is none."""
    start = words.index
    verb = words.either("CREATE", "REPLACE", "DROP")
    begun = _begin(words, verb) if verb else None
    if begun is None:
        words.index = start
        return None
    verb, kind = begun
    if verb == "DROP":
        exists = words.skip("IF EXISTS")
        return DropRef(table, kind, _ref_name(words), exists)
    how = _how(words, verb)
    name = _ref_name(words)
    travel = _travel(words)
    retention = _retention(words, kind)
    return CreateRef(table, kind, name, travel, how, verb == "REPLACE", retention)


def read_ref_in_table(words: TokenCursor, verb: str) -> Write | None:
    """Read Trino's statements about branches and tags, from the second word; None for others."""
    begun = _begin(words, verb)
    if begun is None:
        return None
    verb, kind = begun
    how = _how(words, verb)
    exists = verb == "DROP" and words.skip("IF EXISTS")
    name = _ref_name(words)
    if verb.startswith("CREATE") and words.peek() == "WITH":
        raise unsupported("WITH (…) of a branch", words.here, "ALTER TABLE … RETAIN n DAYS")
    words.need("IN TABLE")
    table = read_name(words)
    made: Write
    if verb == "DROP":
        made = DropRef(table, kind, name, exists)
    elif verb == "ALTER":
        words.need("FAST FORWARD TO")
        made = FastForward(table, name, _ref_name(words))
    else:
        travel = VersionText(_ref_name(words)) if words.skip("FROM") else None
        made = CreateRef(table, kind, name, travel, how)
    words.end()
    return made


def _begin(words: TokenCursor, verb: str) -> tuple[str, Kind] | None:
    """Read OR REPLACE after the verb CREATE, and the kind of ref; None if none comes next."""
    start = words.index
    if verb == "CREATE" and words.skip("OR REPLACE"):
        verb = "CREATE OR REPLACE"
    kind = words.either(*KINDS).lower()
    if kind:
        return verb, cast("Kind", kind)
    words.index = start
    return None


def _how(words: TokenCursor, verb: str) -> Literal["fail", "keep", "replace"]:
    """Read IF NOT EXISTS; return what happens if the ref exists."""
    unless = words.skip("IF NOT EXISTS")
    if verb == "CREATE":
        return "keep" if unless else "fail"
    if unless:
        raise syntax_error(f"{verb} and IF NOT EXISTS exclude each other", words.here)
    return "replace"


def _ref_name(words: TokenCursor) -> str:
    """Read a name, which may be a string literal or have dots."""
    if words.is_text:
        at, text = words.here, words.text()
        if not text.strip():
            raise syntax_error("a name without a letter", at, ("the name of a branch or tag",))
        return text
    return ".".join(words.name("the name of a branch or tag"))


def _travel(words: TokenCursor) -> TimeTravel | None:
    """Read a snapshot in any spelling of time travel, or in Spark's own for this statement."""
    if words.token is None or words.peek() in ("RETAIN", "WITH"):
        return None
    if words.skip("FROM") or words.skip("FOR TAG AS OF"):
        return VersionText(_ref_name(words))
    start = words.index
    tokens = [*words.until("RETAIN", "WITH")]
    if not tokens:
        raise words.unexpected("AS OF VERSION", "RETAIN", "WITH SNAPSHOT RETENTION")
    if words.tokens[start].word == "AS" and len(tokens) > 3:
        tokens = [tokens[2], *tokens[:2], *tokens[3:]]  # AS OF VERSION n
    at = words.tokens[start]
    opening = words_at("SELECT * FROM t", at.start)
    (reference, *more) = words.parse.any_query([*opening, *tokens]).references
    if more or reference.changes is not None or reference.travel is None:
        words.index = start
        raise words.unexpected("AS OF VERSION", "RETAIN", "WITH SNAPSHOT RETENTION")
    return reference.travel


def _retention(words: TokenCursor, kind: Kind) -> Retention:
    age = _age(words) if words.skip("RETAIN") else None
    if kind == "tag" or not words.skip("WITH SNAPSHOT RETENTION"):
        return Retention(age)
    count = None
    if words.peek(1) in ("SNAPSHOT", "SNAPSHOTS"):
        count = _positive(words)
        words.index += 1
    if words.token is None and count is not None:
        return Retention(age, count)
    return Retention(age, count, _age(words))


def _age(words: TokenCursor) -> int:
    number = _positive(words)
    unit = words.peek().removesuffix("S")
    if unit not in _UNIT_MS:
        raise words.unexpected("DAYS", "HOURS", "MINUTES")
    words.index += 1
    return number * _UNIT_MS[unit]


def _positive(words: TokenCursor) -> int:
    at, number = words.here, words.number()
    if not 0 < number < 10**9:
        raise syntax_error(f"{number} is no such number", at, ("a number from 1",))
    return number
