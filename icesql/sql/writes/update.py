"""UPDATE, DELETE and TRUNCATE: the table, the condition, and the query that finds the rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from icesql.quoting import quoted
from icesql.sql.cursor import TokenCursor
from icesql.sql.edited_text import spliced
from icesql.sql.keywords import word_set
from icesql.sql.lexer import CLOSING, NUMBER, OPENING, Token, Tokens, phrase, word_at
from icesql.sql.parser.travel.clauses import PHRASES
from icesql.sql.positions import syntax_error, unsupported
from icesql.sql.statement import Query
from icesql.sql.trees import exp, parts_of
from icesql.sql.writes.statements import ColumnValue, Delete, TableName, Update

# ------------------------------------------------------------------ table and condition


# Clauses that may follow WHERE only in a query.
BEHIND_WHERE: Final = word_set(
    "UNION EXCEPT INTERSECT MINUS GROUP HAVING WINDOW QUALIFY ORDER SORT CLUSTER DISTRIBUTE LIMIT "
    "OFFSET FETCH FOR"
)
RETURNING: Final = (
    "the rows of a commit are in SELECT * FROM t CHANGES FROM VERSION n, the snapshot before it"
)
_HINT: Final = "rows are written to a branch: VERSION AS OF 'branch'"
_PLAIN: Final = word_set("expressions from_ where")


def read_target(words: TokenCursor) -> TableName:
    """``t``, ``t VERSION AS OF 'b'``, ``t FOR SYSTEM_VERSION AS OF 'b'``, ``t@b``,
    ``t @ BRANCH b``, ``t AT (BRANCH => 'b')`` or ``t AT BRANCH b``.

    ``t.branch_b`` is resolved to a table and a branch when the table is looked up. Raises
    SqlSyntaxError, and UnsupportedSqlError for a snapshot or a time.
    """
    at = words.here
    return TableName(words.name("a table"), at, _branch(words))


def _branch(words: TokenCursor) -> str | None:
    if words.skip("@"):
        words.skip("BRANCH")
        return _name(words)
    at = words.here
    for written, kind in PHRASES.items():
        if not words.skip(written):
            continue
        if kind not in ("VERSION", "BRANCH", "VERSION_REF"):
            raise unsupported("writing to the past of a table", at, _HINT)
        found = _name(words)
        if "(" in written:
            words.need(")")
        return found
    return None


def _name(words: TokenCursor) -> str:
    if words.kind(words.index) in ("", NUMBER):
        raise unsupported("writing to a snapshot", words.here, _HINT)
    return words.text_or_name("the name of a branch")


def refuse_endings(tokens: Tokens) -> None:
    """Raise UnsupportedSqlError for ON CONFLICT and RETURNING outside brackets."""
    for place, word in plain_words(tokens):
        token = tokens[place]
        after = tokens[place + 1].word if place + 1 < len(tokens) else ""
        if word == "ON" and after == "CONFLICT":
            raise unsupported("ON CONFLICT", token, "use MERGE")
        if word == "RETURNING":
            raise unsupported("RETURNING", token, RETURNING)


def plain_words(tokens: Tokens) -> Iterator[tuple[int, str]]:
    """Yield the index and word of each token outside brackets and outside CASE … END.

    Stops at an unmatched closing bracket.
    """
    depth = cases = 0
    for index, token in enumerate(tokens):
        word = token.word
        depth += (word in OPENING) - (word in CLOSING)
        if depth < 0:
            return
        if word == "CASE":
            cases += 1
        elif word == "END" and cases:
            cases -= 1
        elif word and word not in CLOSING and depth == cases == 0:
            yield index, word


def before_word(tokens: Tokens, *stops: str) -> int:
    """Return the number of tokens before the first of these words outside brackets and CASE."""
    return next((index for index, word in plain_words(tokens) if word in stops), len(tokens))


def alias_of(tokens: Tokens, expected: str) -> Token | None:
    """Return the alias between a table and what follows it. Raises SqlSyntaxError."""
    given = [token for token in tokens if token.word != "AS"]
    if len(given) > 1:
        raise syntax_error(f'unexpected "{given[1].text}"', given[1], (expected,))
    return given[0] if given else None


def check_condition(rows: Query, tokens: Tokens, word: str, more: Collection[str] = ()) -> None:
    """Refuse clauses that may follow WHERE in a query: a UNION would select more rows.

    ``word`` is the statement's first word, ``tokens`` are those of the condition, ``more`` the
    additional parts of the tree that are allowed.
    """
    if isinstance(rows.tree, exp.Select) and parts_of(rows.tree) <= _PLAIN.union(more):
        return
    for place, each in plain_words(tokens):
        if each in BEHIND_WHERE:
            raise unsupported(
                f"{word} … {phrase(tokens, place)}", tokens[place], "put it into a subquery"
            )
    at = tokens[0] if tokens else None
    raise unsupported(f"{word} with more than a condition", at, "put it into a subquery")


# ------------------------------------------------------------------ UPDATE


# Words that end a value.
_FOLLOWING: Final = ("FROM", "WHERE", "RETURNING", *BEHIND_WHERE)


def read_update(words: TokenCursor) -> Update:
    """Read the statement after UPDATE: ``table [alias] SET column = value, … [FROM …] [WHERE …]``.

    The query selects the values, in order, from the table and those of FROM.
    """
    first = words.index
    table = read_target(words)
    alias = alias_of(words.until("SET"), "SET")
    named = words.tokens[first : words.index]
    words.need("SET")
    assigned = words.listed(lambda: _read_assignment(words))
    rest = words.rest
    place = before_word(rest, "WHERE")
    others, condition = rest[:place], rest[place:]
    refuse_endings(rest)
    if others and others[0].word != "FROM":
        word = others[0].word
        if word in _FOLLOWING:
            raise unsupported(f"UPDATE … {phrase(others, 0)}", others[0], "put it into a subquery")
        raise words.unexpected("WHERE", "FROM", "the end of the statement")
    if others and len(others) == 1:
        raise syntax_error("nothing follows FROM", others[0].stop, ("a table",))
    if len(condition) == 1:
        raise syntax_error("nothing follows WHERE", condition[0].stop, ("a condition",))
    tokens = [*_selected(named[0], [value for _, value in assigned])]
    tokens += [word_at("FROM", named[0].start), *named]
    if others:
        tokens += [word_at(",", others[0].start), *others[1:]]
    # An inserted WHERE, because SET and its values precede the condition in the text.
    at = condition[0] if condition else words.tokens[-1]
    tokens += [word_at("WHERE", at.start)]
    tokens += condition[1:] or [word_at("TRUE", at.start)]
    query = words.parse.any_query(tokens)
    check_condition(query, condition, "UPDATE", ("joins", "laterals") if others else ())
    _check_values(query, assigned)
    if query.only_text:
        raise unsupported(f"{query.only_text} in UPDATE", named[0], "put its rows into a table")
    # The engine runs the tree, because the user's text has these words in another order.
    query = replace(query, user_text=None, spark=None)
    written = None if alias is None else str(alias.text)
    return Update(table, tuple(each for each, _ in assigned), query, written)


def _read_assignment(words: TokenCursor) -> tuple[ColumnValue, Tokens]:
    """Read ``column = value``; also return the tokens of the value."""
    if words.peek() == "(":
        raise unsupported("SET (a, b) = …", words.here, "write SET a = …, b = …")
    at = words.here
    path = words.name("a column")
    words.need("=")
    start = words.index
    words.until(*_FOLLOWING)
    # IS DISTINCT FROM is one comparison.
    while words.peek() == "FROM" and words.tokens[words.index - 1].word == "DISTINCT":
        words.index += 1
        words.until(*_FOLLOWING)
    value = words.tokens[start : words.index]
    if not value:
        raise words.unexpected("a value", "DEFAULT")
    default = len(value) == 1 and value[0].word == "DEFAULT"
    return ColumnValue(path, at, default), value


def _selected(at: Token, values: Sequence[Tokens]) -> Iterator[Token]:
    """Yield SELECT and the values, each in brackets, so that it is one value without an alias."""
    yield word_at("SELECT", at.start)
    for number, value in enumerate(values):
        if number:
            yield word_at(",", value[0].start)
        if len(value) == 1 and value[0].word == "DEFAULT":
            yield word_at("NULL", value[0].start)
            continue
        yield word_at("(", value[0].start)
        yield from value
        yield word_at(")", value[-1].stop)


def _check_values(query: Query, assigned: Sequence[tuple[ColumnValue, Tokens]]) -> None:
    """Refuse assignments that are not one value for each column, computed from one row."""
    values = query.tree.expressions
    if len(values) != len(assigned):
        raise unsupported("several values for one column", assigned[0][0].offset)
    for node, (_, tokens) in zip(values, assigned, strict=True):
        if isinstance(node.unnest(), exp.Alias):
            raise syntax_error("a value has no alias", tokens[-1])
        for inner in node.walk(prune=lambda each: isinstance(each, exp.Query)):
            if isinstance(inner, exp.Query):
                continue
            if isinstance(inner, exp.AggFunc | exp.Window):
                raise unsupported(
                    "an aggregate or window function in SET", tokens[0], "put it into a subquery"
                )
            if isinstance(inner, exp.Star | exp.Columns | exp.UDTF):
                raise unsupported("several values for one column", tokens[0])


# ------------------------------------------------------------------ DELETE and TRUNCATE


def read_delete(words: TokenCursor) -> Delete:
    """Read the statement after DELETE: a query over the table itself finds its rows.

    The query's text is the user's own from the name of the table on, with a comma for USING.
    """
    words.need("FROM")
    at = words.here
    table = read_target(words)
    after = words.index
    between = words.until("WHERE", "USING", "RETURNING")
    if words.peek() == "RETURNING":
        raise unsupported("DELETE … RETURNING", words.here, RETURNING)
    if words.token is None and not between:
        return Delete(table)
    if words.peek() not in ("WHERE", "USING"):
        words.index = after
        raise words.unexpected("WHERE", "USING", "the end of the statement")
    condition = words.rest
    using = words.token if words.peek() == "USING" else None
    if using is not None:
        words.need("USING")
        if words.token is None or words.peek() == "WHERE":
            # The engine ignores a trailing comma and would run another statement.
            raise syntax_error("nothing follows USING", using.stop, ("a table",))
    refuse_endings(condition)
    alias = alias_of(between, "WHERE")
    owner = table.parts[-1:] if using is not None else ()
    of = f"{quoted(owner[0])}." if owner else ""
    if alias is not None:
        of = words.sql[alias.start : alias.stop] + "."
    edits = [(at, at, f"SELECT {of}_file, {of}_pos FROM ")]
    if using is not None:
        # In FROM, the tables of USING follow the statement's table.
        edits.append((using.start, using.stop, ","))
    rows = words.parse.composed(*spliced(words.sql, at, words.tokens[-1].stop, edits))
    check_condition(rows, condition, "DELETE", () if using is None else ("joins", "laterals"))
    return Delete(table, rows)


def read_truncate(words: TokenCursor) -> Delete:
    """Read the statement after TRUNCATE."""
    words.skip("TABLE")
    table = read_target(words)
    words.end()
    return Delete(table)
