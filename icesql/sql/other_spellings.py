"""Rewrite syntax that a parser reads differently, or not at all: ROLLUP, FLATTEN, hints, pipes.

For DuckDB's parser:

    GROUP BY a, b WITH ROLLUP | WITH CUBE           GROUP BY ROLLUP (a, b)
    , LATERAL FLATTEN(input => l [, outer => b]) f  , LATERAL (SELECT … unnest(l) …) f
    , TABLE(FLATTEN(l)) f                           the same

FLATTEN is the function on lists: its columns are index, value, this, path and key, which is NULL.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from icesql.frozen import Frozen
from icesql.sql.cursor import TokenCursor
from icesql.sql.edited_text import Change, Sources, spliced
from icesql.sql.keywords import word_set
from icesql.sql.lexer import (
    COMMENT,
    ENDS_CLAUSE,
    NUMBER,
    SPACE,
    TEXT,
    Token,
    Tokens,
    before,
    phrase,
    pieces,
    span_of,
)
from icesql.sql.positions import offset_of, syntax_error, unsupported
from icesql.sql.references import read_file
from icesql.sql.trees import exp

_GROUPS: Final = ("ROLLUP", "CUBE")
_ARGUMENTS: Final = ("input", "outer")


def other_spellings(sql: str, tokens: Tokens) -> tuple[str, Sources] | None:
    """Return the text of a statement in DuckDB's spelling, and its sources; None if unchanged.

    Raises SqlSyntaxError, UnsupportedSqlError for syntax without an equivalent.
    """
    edits: list[Change] = []
    words = TokenCursor(tokens, sql)
    for index, token in enumerate(tokens):
        word = token.word
        if word == "WITH" and words.word(index + 1) in _GROUPS:
            if words.word(index + 2) != "(":
                edits += _grouped(words, index)
        elif word == "LATERAL" and words.word(index + 1) == "FLATTEN":
            edits += _flattened(words, index, index + 1)
        elif word == "TABLE" and words.matches(index + 1, "( FLATTEN"):
            edits += _flattened(words, index, index + 2)
    if not edits:
        return None
    edits.sort()
    last = tokens[0].start
    for start, end, _ in edits:
        if start < last:
            raise unsupported("one of these forms inside of another", start, "write a subquery")
        last = end
    return spliced(sql, *span_of(tokens), edits)


def _grouped(words: TokenCursor, index: int) -> list[Change]:
    """Rewrite ``WITH ROLLUP`` at ``index``, after the keys of a GROUP BY."""
    tokens = words.tokens
    first = before(tokens, index - 1, ("GROUP",)) + 1
    first += words.word(first) == "BY"
    if not 0 < first < index:
        raise syntax_error(
            f"WITH {tokens[index + 1].text} comes after GROUP BY keys", tokens[index]
        )
    kind = tokens[index + 1].word
    if tokens[first].word == "ALL":
        raise unsupported(f"GROUP BY ALL WITH {kind}", tokens[first], "name the columns")
    start, end = tokens[first].start, tokens[index - 1].stop
    return [(start, start, f"{kind} ("), (end, tokens[index + 1].stop, ")")]


def _flattened(words: TokenCursor, first: int, name: int) -> list[Change]:
    """Rewrite the call of FLATTEN that begins at ``first``, with its name at ``name``."""
    tokens, words.index = words.tokens, name + 1
    given, last = _arguments(words), words.index - 1
    if name - first == 2:  # TABLE(FLATTEN(…))
        last += 1
        if words.word(last) != ")":
            raise syntax_error("TABLE(FLATTEN(…)) does not end", tokens[name], (")",))
    if "input" not in given:
        raise syntax_error("FLATTEN needs a list", tokens[name], ("input =>",))
    value = given["input"]
    outer = given.get("outer", "false").upper()
    if outer not in ("TRUE", "FALSE"):
        raise unsupported("OUTER that is no constant", tokens[name], "outer => true")
    # DuckDB has internal errors for several calls of unnest() on a list of another query.
    each = (
        "{'index': flattened_at - 1, 'value': flattened, "
        f"'this': {value}, 'key': CAST(NULL AS VARCHAR), 'path': '[' || (flattened_at - 1) || ']'}}"
    )
    query = (
        'LATERAL (SELECT flattened."index", flattened."value", flattened.this, flattened."key", '
        f"flattened.path FROM (SELECT unnest(list_transform({value}, "
        f"lambda flattened, flattened_at: {each})) AS flattened))"
    )
    start, end = tokens[first].start, tokens[last].stop
    if outer == "FALSE":
        return [(start, end, query)]
    if words.word(first - 1) != "," or not first:
        raise unsupported("OUTER behind this join", tokens[name], "write a comma before LATERAL")
    after = last + (2 if words.word(last + 1) == "AS" else 1)
    if after >= len(tokens) or not tokens[after].is_name:
        raise unsupported("OUTER without an alias", tokens[name], "name it: FLATTEN(…) AS f")
    comma, alias = tokens[first - 1], tokens[after].stop
    return [(comma.start, end, f" LEFT JOIN {query}"), (alias, alias, " ON true")]


def _arguments(words: TokenCursor) -> dict[str, str]:
    """Return the SQL of each argument by its name."""
    found: dict[str, str] = {}

    def read(inner: TokenCursor) -> None:
        at, label = inner.here, "" if found else "input"
        if inner.peek(1) == "=>":
            label = inner.identifier().lower()
            inner.need("=>")
        start, value = inner.index, inner.until()
        for each in value:
            if each.word == "?":
                raise unsupported("a ? in FLATTEN", each, "write $1")
        if label not in _ARGUMENTS or label in found or not value:
            hint = "it takes input => a list, and outer => true"
            raise unsupported(f"this argument of FLATTEN ({label})", at, hint)
        found[label] = inner.written(start, inner.index)

    if not words.skip("( )"):
        words.bracketed(read)
    return found


# ------------------------------------------------------------------ advice to other engines
# Hints, SORT BY and DISTRIBUTE BY change no row.


# Join methods, numbers of partitions and files, choice of an index: the rows stay the same.
_ADVICE: Final = (
    "BROADCAST|BROADCASTJOIN|MAPJOIN|STREAMTABLE|MERGE|MERGEJOIN|SHUFFLE_MERGE|SHUFFLE_HASH"
    "|SHUFFLE_REPLICATE_NL|COALESCE|REPARTITION|REPARTITION_BY_RANGE|REBALANCE|SKEW|RANGE_JOIN"
    "|SHUFFLE|NOSHUFFLE|STRAIGHT_JOIN|PARALLEL|NO_PARALLEL|ORDERED|LEADING|USE_HASH|USE_NL"
    "|USE_MERGE|INDEX|NO_INDEX|FULL|HASH_JOIN|NO_HASH_JOIN|ALL_ROWS|FIRST_ROWS|CARDINALITY"
)
_ITEM: Final = rf"(?:{_ADVICE})\b\s*+(?:\([^()]*+\))?"
_HINT: Final = re.compile(rf"/\*\+\s*(?:{_ITEM}[\s,]*+)++\*/", re.IGNORECASE)
# Flink's options, which choose a snapshot; see ``travel.options``.
_OPTIONS: Final = re.compile(r"/\*\+\s*OPTIONS\s*\([^()]*\)\s*\*/", re.IGNORECASE)


def read_hints(sql: str, dialect: str) -> tuple[str, dict[int, str]]:
    """Return ``sql`` without hints that only advise, and a note for each, by its offset.

    WITH clauses replace Flink's options; offsets do not change. Raises UnsupportedSqlError for any
    other hint.
    """
    notes: dict[int, str] = {}
    before = ""  # the word or sign before a hint; COMMENT for a comment
    for kind, start, end in pieces(sql, dialect=dialect):
        if kind != COMMENT or not sql.startswith("/*+", start):
            if kind != SPACE:
                before = COMMENT if kind == COMMENT else sql[start:end].upper()
            continue
        if _HINT.fullmatch(sql, start, end):
            shown = " ".join(sql[start + 3 : end - 2].split())
            notes[start] = f"the hint {shown} only advises an engine: it was left out"
            put = ""
        elif _OPTIONS.fullmatch(sql, start, end) and before not in ("SELECT", COMMENT):
            opened = sql.index("(", start)
            put = "WITH".ljust(opened - start) + sql[opened : end - 2]
        else:
            hint = "leave it out; a snapshot is chosen with FOR VERSION AS OF …"
            raise unsupported("an optimizer hint /*+ … */", start, hint)
        sql = sql[:start] + put.ljust(end - start) + sql[end:]
    return sql, notes


def sort_once(tree: exp.Expr) -> None:
    """Turn SORT BY and CLUSTER BY into ORDER BY, and remove DISTRIBUTE BY.

    Rows in a total order are also sorted within each partition, which is all that these clauses
    require. The expressions of DISTRIBUTE BY come last in the order, so that their names are
    resolved. Beside an ORDER BY the clauses stay and are refused, as in Spark.
    """
    for select in tree.find_all(exp.Select):
        clauses = [select.args.get(part) for part in ("sort", "cluster", "distribute")]
        if select.args.get("order") is not None or not any(clauses):
            continue
        items = [item for clause in clauses if clause is not None for item in clause.expressions]
        for part in ("sort", "cluster", "distribute"):
            select.set(part, None)
        made = [
            item if isinstance(item, exp.Ordered) else exp.Ordered(this=item, nulls_first=True)
            for item in items
        ]
        select.set("order", exp.Order(expressions=made))


# ------------------------------------------------------------------ tokens for sqlglot
# Where the engine reads them differently. sqlglot's parser is not patched, so it may be compiled
# and of any release; the tree is repaired after parsing.


_AMOUNT: Final = r"(?<![0-9])[0-9]++(?:\.[0-9]++)?+\s*+[A-Za-z]"
_ONE_AMOUNT: Final = (
    r"(?i)\s*[+-]?[0-9]+\s*"
    r"(?:(?:micro|milli)?second|minute|hour|day|week|month|quarter|year|decade)s?\s*"
)
_NO_UNITS: Final = ENDS_CLAUSE | word_set(
    "GROUP ORDER AND OR NOT IS IN BETWEEN LIKE ASC DESC WHEN ELSE END"
)
_INTERVAL_UNIT: Final = "ICESQLINTERVAL"
_TYPED: Final = word_set("DATE TIME TIMESTAMP TIMESTAMPTZ TIMESTAMP_NTZ")


class Rewriting(Frozen):
    """The tokens for sqlglot, and the original ones for ``mend``."""

    tokens: list[Token]
    given: Tokens
    intervals: list[str]

    def mend(self, tree: exp.Expr, *, files: bool) -> None:
        """Restore in ``tree`` what the rewritten tokens could not express.

        ``files``: whether 'data.parquet' may be a table. Raises UnsupportedSqlError,
        SqlSyntaxError.
        """
        if self.intervals:
            _mend_intervals(tree, self.intervals)
        texts = {each.start for each in self.given if each.kind == TEXT}
        for table in list(tree.find_all(exp.Table)):
            self._place(table, texts, files)

    def _place(self, table: exp.Table, texts: Collection[int], files: bool) -> None:
        name = table.this
        # A name with more than three parts ends in a Dot node.
        start = offset_of(name if isinstance(name, exp.Func) else table.parts[0])
        if start is not None:
            table.meta.setdefault("start", start)
        if start in texts and isinstance(name, exp.Identifier):
            read_file(table, name.name, files=files and len(table.parts) == 1)


def rewrite_tokens(tokens: Tokens, sql: str) -> Rewriting:
    """Rewrite the tokens of a dialect other than DuckDB's."""
    made: list[Token] = []
    intervals: list[str] = []
    skipped = False
    for index, token in enumerate(tokens):
        before = made[-1] if made else None
        if skipped:
            skipped = False
            continue
        if token.kind == TEXT and before is not None:
            following = tokens[index + 1] if index + 1 < len(tokens) else None
            if before.word == "INTERVAL" and _is_whole_text(token.text, following):
                # sqlglot keeps the first amount of '1 day 02:00:00' or '3 days ago' and drops the
                # rest; it makes the unit of '30 min' an alias, and '1.5 hours' an integer.
                intervals.append(token.text)
                token = token.like(f"{len(intervals) - 1} {_INTERVAL_UNIT}", TEXT)
        elif token.word in _TYPED and _is_typed_literal(tokens, index):
            # DATE '2026-01-01'::TEXT would cast the string inside the literal.
            made += [
                token.like("("),
                token,
                tokens[index + 1],
                tokens[index + 1].like(")"),
            ]
            skipped = True
            continue
        made.append(token)
    return Rewriting(made, tokens, intervals)


def _is_typed_literal(tokens: Tokens, index: int) -> bool:
    following = tokens[index + 1 : index + 3]
    return [each.kind for each in following[:1]] == [TEXT] and following[-1].word == "::"


def _is_whole_text(text: str, following: Token | None) -> bool:
    if not re.search(_AMOUNT, text):
        # Older sqlglot takes any following word as the unit of '02:00:00'.
        return following is not None and following.word in _NO_UNITS
    return not re.fullmatch(_ONE_AMOUNT, text)


def _mend_intervals(tree: exp.Expr, texts: Sequence[str]) -> None:
    for interval in tree.find_all(exp.Interval):
        unit = interval.args.get("unit")
        if isinstance(unit, exp.Var) and unit.name == _INTERVAL_UNIT:
            interval.set("this", exp.Literal.string(texts[int(interval.this.name)]))
            interval.set("unit", None)


# ------------------------------------------------------------------ pipes
# ``FROM t |> WHERE a > 1 |> SELECT a``: sqlglot adds each step to the query before it. That is
# correct only if SQL evaluates the clause of the step last. Therefore a leading query becomes a
# subquery, and a step whose clause SQL would evaluate before an earlier step is refused by name.


_SETS: Final = ("UNION", "EXCEPT", "INTERSECT")
_CUTS: Final = ("LIMIT", "OFFSET", "FETCH")
# After these steps a filtered query becomes a subquery.
_OWN_QUERY: Final = ("SELECT", "EXTEND", "AGGREGATE", "UNION", "EXCEPT", "INTERSECT")
_OF_SETS: Final = ("ALL", "DISTINCT", "BY", "NAME")
_IN_PARENTHESES: Final = "put the steps before it in parentheses"


def in_steps(tokens: Tokens) -> Tokens:
    """Return the tokens, with ``FROM (…)`` around each query that steps follow.

    Raises UnsupportedSqlError for a step that sqlglot's parser would apply in another order.
    """
    if all(token.word != "|>" for token in tokens):
        return tokens
    written: dict[int, list[Token]] = {}
    for first, pipes, end in _chains(tokens):
        head = list(_outer(tokens[first : pipes[0]]))
        if head and head[0].word in ("SELECT", "WITH"):
            for token in head:
                if token.word in _SETS:
                    raise unsupported("a step after this", token, "put it in parentheses")
            written[first] = [head[0].like("FROM"), head[0].like("(")]
            written[pipes[0]] = [head[-1].like(")")]
        elif [token.word for token in head] == ["(", ")"]:
            written[first] = [head[0].like("FROM")]
        steps = [
            list(_outer(tokens[begin + 1 : stop]))
            for begin, stop in zip(pipes, [*pipes[1:], end], strict=True)
        ]
        _check(steps)
    found: list[Token] = []
    for index, token in enumerate(tokens):
        found += [*written.get(index, ()), token]
    return found


def _chains(tokens: Tokens) -> Iterator[tuple[int, list[int], int]]:
    """For each pipe query: the index of its first token, its pipes, and its end."""
    stack: list[tuple[int, list[int]]] = [(0, [])]
    for index, token in enumerate(tokens):
        if token.word == "(":
            stack.append((index + 1, []))
        elif token.word == "|>":
            stack[-1][1].append(index)
        elif token.word == ")" and len(stack) > 1:
            first, pipes = stack.pop()
            if pipes:
                yield first, pipes, index
    for first, pipes in stack:
        if pipes:
            yield first, pipes, len(tokens)


def _outer(tokens: Tokens) -> Iterator[Token]:
    """The tokens outside parentheses."""
    depth = 0
    for token in tokens:
        depth -= token.word == ")"
        if not depth:
            yield token
        depth += token.word == "("


def _check(steps: Sequence[Tokens]) -> None:
    is_filtered = False
    for number, step in enumerate(steps):
        if not step:
            continue
        word = phrase(step, 0)
        before = steps[number - 1] if number else ()
        if any(token.word in _CUTS for token in before):
            raise unsupported(f"the step {word} after LIMIT", step[0], _IN_PARENTHESES)
        if is_filtered and word in ("RIGHT", "FULL", "NATURAL"):
            raise unsupported(f"the step {word} JOIN after WHERE", step[0], _IN_PARENTHESES)
        query = next((token for token in step[1:] if token.word not in _OF_SETS), None)
        if step[0].word in _SETS and query is not None and query.word != "(":
            raise unsupported(f"{word} in steps with this", query, "put it in parentheses")
        if word == "AGGREGATE":
            _check_groups(step)
        is_filtered = word == "WHERE" or (is_filtered and word not in _OWN_QUERY)


def _check_groups(step: Tokens) -> None:
    is_group = False
    for last, token, after in zip(step, step[1:], [*step[2:], None], strict=False):
        is_group = is_group or last.word == "GROUP"
        begins = last.word in ("BY", ",")
        is_whole = after is None or after.is_name or after.word in (",", "AS")
        if is_group and begins and is_whole and token.kind == NUMBER:
            raise unsupported("AGGREGATE by the number of a column", token, "write its name")
