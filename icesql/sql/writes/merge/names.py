"""Qualify the unqualified names in the expressions of MERGE.

An INSERT clause sees only the source, and a BY SOURCE clause only the table. But one query joins
both, and a name that both have would be ambiguous in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sqlglot import exp

from icesql.frozen import Frozen
from icesql.sql.lexer import TEXT, Span, Tokens
from icesql.sql.positions import first_offset, syntax_error, unsupported
from icesql.sql.sources import Change, Composed
from icesql.sql.table_name import Parts
from icesql.sql.writes.merge.statement import BY_SOURCE, NOT_MATCHED

_OF_SEVERAL: Final = (exp.AggFunc, exp.Window, exp.UDTF, exp.Explode, exp.Star)


class Part(Frozen):
    """An expression of the statement and the kind of its clause, "" for ON."""

    span: Span
    kind: str


class Sides(Frozen):
    """The names of the table and the source, unquoted and as written in SQL.

    ``source_parts`` is the whole name of a source without an alias, in lower case.
    """

    target: str
    target_word: str
    source: str
    source_word: str
    source_parts: Parts = ()


def written_name(name: str, tokens: Tokens, sql: str) -> str:
    """Return a name as the statement writes it, with its quotes."""
    for token in reversed(tokens):
        if token.text == name and token.kind != TEXT:
            return sql[token.start : token.stop]
    return name


def check_part(node: exp.Expr | None, where: str) -> None:
    """Refuse functions and stars that combine several rows, or produce several rows or columns."""
    for each in _outer(node):
        if isinstance(each, _OF_SEVERAL):
            what = "*" if isinstance(each, exp.Star) else str(each.sql()).partition("(")[0]
            raise unsupported(f"{what} in MERGE … {where}", each, "compute it in the source")


def part_edits(node: exp.Expr, part: Part, sides: Sides, text: Composed) -> Iterator[Change]:
    """Yield the edits of an expression's words, with offsets in the statement.

    Raises SqlSyntaxError for a column of the side that the clause does not see.
    """
    own = {NOT_MATCHED: sides.source_word, BY_SOURCE: sides.target_word}.get(part.kind)
    hidden = {NOT_MATCHED: sides.target, BY_SOURCE: sides.source}.get(part.kind, "").lower()
    known = {sides.target.lower(), sides.source.lower()}
    for each in _outer(node):
        if not isinstance(each, exp.Column):
            continue
        start = first_offset(each)
        if start is None:
            continue
        place = text.place(start)
        parts = [str(name.name).lower() for name in each.parts]
        if len(parts) > 1 and parts[0] in known:
            if hidden and parts[0] == hidden:
                side = "source" if part.kind == NOT_MATCHED else "table"
                raise syntax_error(
                    f"{each.sql()}: WHEN {part.kind} sees the columns of the {side} alone", place
                )
            continue
        length = len(sides.source_parts)
        if length > 1 and tuple(parts[:length]) == sides.source_parts:
            last = each.parts[length - 1].meta.get("start")
            if last is not None:
                yield place, text.place(int(last)), ""
        elif own is not None:
            yield place, place, f"{own}."


def taken_path(node: exp.Expr, part: Part, sides: Sides) -> Parts:
    """Return the path of a value that is a column, or a field of one, in the source; () otherwise.

    If the clause sees both sides, an unqualified name may also be the table's.
    """
    node = node.unnest()
    if not isinstance(node, exp.Column) or part.kind == BY_SOURCE:
        return ()
    names = tuple(str(name.name) for name in node.parts)
    lower = tuple(name.lower() for name in names)
    for whole in ((sides.source.lower(),), sides.source_parts):
        length = len(whole)
        if 0 < length < len(names) and lower[:length] == whole:
            return names[length:]
    return () if lower[0] == sides.target.lower() and len(names) > 1 else names


def source_columns(
    node: exp.Expr, part: Part, sides: Sides, text: Composed
) -> Iterator[tuple[str, int]]:
    """Yield the source columns that an expression uses, and their offsets in the statement."""
    for each in _outer(node):
        if not isinstance(each, exp.Column):
            continue
        names = [str(name.name) for name in each.parts]
        skipped = 1 if len(names) > 1 and names[0].lower() == sides.source.lower() else 0
        if not skipped and part.kind != NOT_MATCHED:
            continue
        length = len(sides.source_parts)
        first = tuple(name.lower() for name in names[:length])
        if not skipped and first == sides.source_parts:
            skipped = length
        start = each.parts[skipped].meta.get("start") if skipped < len(names) else None
        if start is not None:
            yield names[skipped], text.place(int(start))


def _outer(node: exp.Expr | None) -> Iterator[exp.Expr]:
    """Yield the nodes of an expression, without those of its subqueries."""
    if node is None:
        return
    yield from node.walk(prune=lambda each: isinstance(each, exp.Query))
