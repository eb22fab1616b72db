"""Read MERGE INTO: its source becomes a query, all other parts are kept as spans of its text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from icesql.errors import AmbiguousTableError
from icesql.frozen import Frozen
from icesql.sql.cursor import TokenCursor
from icesql.sql.edited_text import Change, Composed
from icesql.sql.lexer import TEXT, Span, Tokens, span_of
from icesql.sql.positions import first_offset, syntax_error, unsupported
from icesql.sql.statement import Query
from icesql.sql.table_name import Parts
from icesql.sql.trees import parts_of
from icesql.sql.writes.insert import read_evolution
from icesql.sql.writes.merge_statement import (
    BY_SOURCE,
    NOT_MATCHED,
    Composer,
    JoinKey,
    Merge,
    MergeClause,
    read_clauses,
    until,
)
from icesql.sql.writes.statements import TableName
from icesql.sql.writes.update import plain_words, read_target

if TYPE_CHECKING:
    from icesql.sql.parse import Parse


# ------------------------------------------------------------------ qualified names
# An INSERT clause sees only the source, and a BY SOURCE clause only the table. But one query joins
# both, and a name that both have would be ambiguous in it.


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


# ------------------------------------------------------------------ the statement


# The alias of a source without a name, in the query that joins it with the table.
SOURCE: Final = "__merge_source"


def merge_at(tokens: Tokens) -> int | None:
    """Return the index of MERGE in a statement, which may begin with WITH; None without MERGE."""
    first = tokens[0].word
    if first != "WITH":
        return 0 if first == "MERGE" else None
    for index, word in plain_words(tokens):
        if word in ("SELECT", "FROM", "VALUES", "INSERT", "UPDATE", "DELETE"):
            return None
        if word == "MERGE" and tokens[index - 1].text == ")":
            return index
    return None


def read_merge(tokens: Tokens, parse: Parse) -> Merge:
    """Read the statement. Raises SqlSyntaxError and UnsupportedSqlError."""
    at = merge_at(tokens)
    assert at is not None
    sql = parse.sql
    words = TokenCursor(tokens, sql)
    words.index = at + 1
    evolves = read_evolution(words)
    words.need("INTO")
    table, target = _target(words)
    words.need("USING")
    source_tokens = until(words, "ON", "USING", "WHEN")
    if not source_tokens:
        raise words.unexpected("a table", "a query in brackets")
    composer = Composer(sql, under=parse.sources)
    if at:
        composer.copy((tokens[0].start, tokens[at].start))
    source_text = composer.add("SELECT * FROM ").copy(span_of(source_tokens)).made()
    with source_text.placing():
        same, source_words = parse.over(source_text.text)
        source = same.any_query(source_words)
    _check_source(source, source_tokens)
    on_tokens, uses_columns = _on(words)
    join = span_of(on_tokens)
    if words.token is None:
        raise words.unexpected("WHEN MATCHED", "WHEN NOT MATCHED")
    clauses = read_clauses(words.rest, sql)
    parts = _parts(clauses)

    composer = (
        Composer(sql, under=parse.sources)
        .add("FROM ")
        .copy(span_of(target))
        .add(f" JOIN {SOURCE} AS ")
    )
    named = _item(source.tree).alias_or_name or SOURCE
    source_word = written_name(named, source_tokens, sql)
    composer.add(source_word, " ").add("USING " if uses_columns else "ON (").copy(join)
    composer.add("" if uses_columns else ")", " SELECT 1")
    for part in parts:
        composer.add(", (").copy(part.span).add(")")
    text = composer.made()
    with text.placing():
        same, skeleton_words = parse.over(text.text)
        skeleton = same.any_query(skeleton_words)
        item, joined = _joined(skeleton.tree, len(parts) + 1, on_tokens)
        name = item.alias_or_name
        # If both have the same name, the table's alias is its qualified name.
        if named.lower() in (name.lower(), name.rpartition(".")[2].lower()):
            raise AmbiguousTableError(named, offset=item.this.meta.get("start"))
        _check_names(skeleton, source)
    sides = Sides(name, written_name(name, target, sql), named, source_word, _plain_name(source))
    edits: list[Change] = []
    used: list[tuple[str, int]] = []
    taken: list[tuple[Span, Parts]] = []
    for part, node in zip(
        (Part(join, ""), *parts), (joined, *skeleton.tree.expressions[1:]), strict=True
    ):
        with text.placing():
            check_part(node, part.kind or "ON")
        edits += part_edits(node, part, sides, text)
        used += source_columns(node, part, sides, text)
        path = taken_path(node, part, sides)
        if path:
            taken.append((part.span, path))
    return Merge(
        table,
        sql,
        source,
        source_text,
        span_of(target),
        sides.target_word,
        source_word,
        join,
        uses_columns,
        clauses,
        tuple(sorted(edits)),
        skeleton.given,
        _keys(joined),
        tuple(used),
        tuple(taken),
        evolves,
    )


def _target(words: TokenCursor) -> tuple[TableName, Tokens]:
    """Return the table, and all its tokens; the last one is its alias, if it has one."""
    start = words.index
    table = read_target(words)
    if words.peek() != "USING":
        words.skip("AS")
        words.identifier("an alias")
    return table, words.tokens[start : words.index]


def _on(words: TokenCursor) -> tuple[Tokens, bool]:
    uses_columns = words.skip("USING")
    if not uses_columns:
        words.need("ON")
    tokens = until(words, "WHEN")
    if not tokens:
        raise words.unexpected("columns in brackets" if uses_columns else "a condition")
    if uses_columns and (tokens[0].text != "(" or tokens[-1].text != ")"):
        raise syntax_error(f'unexpected "{tokens[0].text}"', tokens[0], ("columns in brackets",))
    return tokens, uses_columns


def _parts(clauses: Sequence[MergeClause]) -> list[Part]:
    """Return all expressions of the clauses, in the order of the text."""
    found = []
    for clause in clauses:
        spans: list[Span | None] = [clause.condition, *(each.value for each in clause.values)]
        found += [Part(span, clause.kind) for span in spans if span is not None]
    return found


def _check_source(source: Query, tokens: Tokens) -> None:
    """Refuse clauses after the source, which must be one table or a query in brackets."""
    tree = source.tree
    if isinstance(tree, exp.Select) and parts_of(tree) <= {"expressions", "from_", "with_"}:
        item = _item(tree)
        if not item.args.get("joins") and not item.args.get("laterals"):
            return
    raise unsupported(
        "a MERGE from more than one table or query", tokens[0], "put it into a query in brackets"
    )


def _item(tree: exp.Expr) -> exp.Expr:
    item: exp.Expr = tree.args["from_"].this
    return item


def _joined(tree: exp.Expr, count: int, on: Tokens) -> tuple[exp.Expr, exp.Join]:
    """Return the table and the join with the source; refuse a query with any other part."""
    item = _item(tree)
    joins = [*(item.args.get("joins") or ()), *(tree.args.get("joins") or ())]
    plain = parts_of(tree) <= {"expressions", "from_", "joins"}
    if plain and len(joins) == 1 and len(tree.expressions) == count:
        return item, joins[0]
    raise unsupported("a MERGE with more than conditions and values", on[0])


def _plain_name(source: Query) -> Parts:
    """Return the name of the source, in lower case, if it is a table without an alias, or ()."""
    item = _item(source.tree)
    if not isinstance(item, exp.Table) or not source.references:
        return ()
    parts = tuple(each.lower() for each in source.references[-1].parts)
    return parts if parts[-1] == item.alias_or_name.lower() else ()


def _check_names(skeleton: Query, source: Query) -> None:
    """Refuse names of CTEs outside the source, where they would refer to tables."""
    clause = source.tree.args.get("with_")
    if clause is None:
        return
    known = {each.alias.lower() for each in clause.expressions}
    for each in skeleton.references:
        if len(each.parts) == 1 and each.parts[0].lower() in known:
            raise unsupported(
                f"{each.name} of the WITH clause outside of USING", each.offset, "use a subquery"
            )


def _keys(join: exp.Join) -> tuple[JoinKey, ...]:
    using = join.args.get("using")
    if using:
        return tuple(JoinKey(("", each.name), ("", each.name)) for each in using)
    found: list[JoinKey] = []
    waiting = [join.args.get("on")]
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, exp.Paren):
            waiting.append(node.this)
        elif isinstance(node, exp.And):
            waiting += [node.this, node.expression]
        elif isinstance(node, exp.EQ):
            sides = [each for each in (node.this, node.expression) if isinstance(each, exp.Column)]
            if len(sides) == 2 and not any(each.args.get("db") for each in sides):
                one, other = ((each.table, each.name) for each in sides)
                found.append(JoinKey(one, other))
    return tuple(found)
