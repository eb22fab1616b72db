"""Create, replace, move and drop branches and tags, in the spellings of Spark, Hive and Trino.

``ALTER TABLE t CREATE BRANCH b …`` is Spark's and Hive's, ``CREATE BRANCH b IN TABLE t`` Trino's.
"""

from __future__ import annotations

from typing import Final, Literal, cast

from icesql.frozen import Frozen
from icesql.sql.cursor import TokenCursor
from icesql.sql.lexer import words_at
from icesql.sql.positions import syntax_error, unsupported
from icesql.sql.statement import Write
from icesql.sql.time_travel import TimeTravel, VersionText
from icesql.sql.writes.definitions import read_name
from icesql.sql.writes.statements import TableName

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
