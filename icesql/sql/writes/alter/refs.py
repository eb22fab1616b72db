"""Create, replace, move and drop branches and tags, in the spellings of Spark, Hive and Trino.

``ALTER TABLE t CREATE BRANCH b …`` is Spark's and Hive's, ``CREATE BRANCH b IN TABLE t`` Trino's.
"""

from __future__ import annotations

from typing import Final, Literal, cast

from msgspec import Struct

from icesql.sql.cursor import TokenCursor
from icesql.sql.lexer import TEXT, words_at
from icesql.sql.positions import syntax_error, unsupported
from icesql.sql.statement import Write
from icesql.sql.time_travel import TimeTravel, VersionText
from icesql.sql.writes.definitions import read_name
from icesql.sql.writes.statements import TableName

Kind = Literal["branch", "tag"]

KINDS: Final = ("BRANCH", "TAG")
_UNIT_MS: Final = {"DAY": 86_400_000, "HOUR": 3_600_000, "MINUTE": 60_000}


class Retention(Struct, frozen=True):
    """How long to keep a ref and its snapshots, in milliseconds; None: the table's setting."""

    max_ref_age_ms: int | None = None
    min_snapshots_to_keep: int | None = None
    max_snapshot_age_ms: int | None = None


class CreateRef(Write, frozen=True):
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


class DropRef(Write, frozen=True):
    """DROP of a branch or tag."""

    table: TableName
    kind: Kind
    name: str
    if_exists: bool = False


class FastForward(Write, frozen=True):
    """Move a branch to the head of another ref."""

    table: TableName
    branch: str
    to: str


def read_ref_change(words: TokenCursor, table: TableName) -> CreateRef | DropRef | None:
    """Read the ref change after ALTER TABLE and its name; None if it is none."""
    start = words.index
    begun = _begin(words)
    if begun is None:
        words.index = start
        return None
    verb, kind = begun
    if verb == "DROP":
        exists = words.skip("IF EXISTS")
        name = _ref_name(words)
        words.end()
        return DropRef(table, kind, name, exists)
    unless = words.skip("IF NOT EXISTS")
    _check_unless(words, verb, unless)
    name = _ref_name(words)
    travel = _travel(words)
    retention = _retention(words, kind)
    words.end()
    how = _how(verb, unless)
    return CreateRef(table, kind, name, travel, how, verb == "REPLACE", retention)


def read_ref_in_table(words: TokenCursor, verb: str) -> CreateRef | DropRef | FastForward | None:
    """Read Trino's statements about branches and tags, from the second word; None for others."""
    start = words.index
    replaces = verb == "CREATE" and words.skip("OR REPLACE")
    if words.peek() not in KINDS:
        words.index = start
        return None
    kind = _kind(words)
    unless = words.skip("IF NOT EXISTS")
    verb = "CREATE OR REPLACE" if replaces else verb
    _check_unless(words, verb, unless)
    exists = verb == "DROP" and words.skip("IF EXISTS")
    name = _ref_name(words)
    if verb.startswith("CREATE") and words.peek() == "WITH":
        raise unsupported("WITH (…) of a branch", words.here, "ALTER TABLE … RETAIN n DAYS")
    words.need("IN TABLE")
    table = read_name(words)
    if verb == "DROP":
        words.end()
        return DropRef(table, kind, name, exists)
    if verb == "ALTER":
        words.need("FAST FORWARD TO")
        to = _ref_name(words)
        words.end()
        return FastForward(table, name, to)
    travel = VersionText(_ref_name(words)) if words.skip("FROM") else None
    words.end()
    return CreateRef(table, kind, name, travel, _how(verb, unless))


def _begin(words: TokenCursor) -> tuple[str, Kind] | None:
    """Read the verb, such as CREATE OR REPLACE, and the kind of ref."""
    for verb in ("CREATE OR REPLACE", "CREATE", "REPLACE", "DROP"):
        if words.skip(verb):
            return (verb, _kind(words)) if words.peek() in KINDS else None
    return None


def _kind(words: TokenCursor) -> Kind:
    kind = words.peek().lower()
    words.index += 1
    return cast("Kind", kind)


def _how(verb: str, unless: bool) -> Literal["fail", "keep", "replace"]:
    if verb != "CREATE":
        return "replace"
    return "keep" if unless else "fail"


def _check_unless(words: TokenCursor, verb: str, unless: bool) -> None:
    if unless and verb != "CREATE":
        raise syntax_error(f"{verb} and IF NOT EXISTS exclude each other", words.here)


def _ref_name(words: TokenCursor) -> str:
    """Read a name, which may be a string literal or have dots."""
    token = words.token
    if token is not None and token.kind == TEXT:
        if not token.text.strip():
            raise syntax_error("a name without a letter", token, ("the name of a branch or tag",))
        return words.text()
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
