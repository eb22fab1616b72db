"""Read MERGE INTO: its source becomes a query, all other parts are kept as spans of its text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from icesql.errors import AmbiguousTableError
from icesql.sql.cursor import TokenCursor
from icesql.sql.lexer import Span, Tokens, span_of
from icesql.sql.positions import syntax_error, unsupported
from icesql.sql.sources import Change
from icesql.sql.statement import Query
from icesql.sql.table_name import Parts
from icesql.sql.trees import parts_of
from icesql.sql.writes.changes.conditions import plain_words, read_target
from icesql.sql.writes.merge.clauses import read_clauses, until
from icesql.sql.writes.merge.names import (
    Part,
    Sides,
    check_part,
    part_edits,
    source_columns,
    taken_path,
    written_name,
)
from icesql.sql.writes.merge.statement import Composer, JoinKey, Merge, MergeClause
from icesql.sql.writes.rows import read_evolution
from icesql.sql.writes.statements import TableName

if TYPE_CHECKING:
    from icesql.sql.parse import Parse

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
