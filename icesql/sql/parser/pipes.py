"""Pipe queries, ``FROM t |> WHERE a > 1 |> SELECT a``, prepared for sqlglot's parser.

sqlglot adds each step to the query before it. That is correct only if SQL evaluates the clause of
the step last. Therefore a leading query becomes a subquery, and a step whose clause SQL would
evaluate before an earlier step is refused by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from icesql.sql.lexer import NUMBER, Token, Tokens, phrase
from icesql.sql.positions import unsupported

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
