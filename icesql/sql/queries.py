"""Parse the queries of a text: with DuckDB's parser in the default dialect, else with sqlglot."""

from __future__ import annotations

from copy import copy
from functools import cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

from sqlglot import exp
from sqlglot.errors import ParseError

from icesql.errors import Error, SqlSyntaxError, UnsupportedSqlError
from icesql.sql.acceptance import Accepts, check_spark_functions, check_tree, has_only_text
from icesql.sql.cursor import read_constant
from icesql.sql.edited_text import LIST, Edit, UserText, nameless_columns
from icesql.sql.grammar import SPARK
from icesql.sql.lexer import (
    TEXT,
    Tokens,
    check_commands_in_from,
    check_tokens,
    span_of,
    tokenize,
    too_deep,
)
from icesql.sql.parameters import ParameterReader
from icesql.sql.parser.depth import SHALLOW, check_depth, nesting, place_nodes
from icesql.sql.parser.literal_list import put_back, without_lists
from icesql.sql.parser.travel.clauses import MISPLACED, cut_travels
from icesql.sql.positions import syntax_error, unsupported
from icesql.sql.reading.engine_tree import ParsedText
from icesql.sql.reading.statement import NotParsed, begins_query, engine_text, read_text
from icesql.sql.references import take_files, take_references
from icesql.sql.show import PREFIX
from icesql.sql.statement import Query
from icesql.stack import with_deep_stack

if TYPE_CHECKING:
    from icesql.sql.parse import Parse

_FEW_TOKENS = 200
_ZONE_HINT = "write the zone into the text: TIMESTAMP '2026-01-31 12:00:00 Europe/Vienna'"


def plain_query(parse: Parse, tokens: Tokens) -> Query:
    """Parse the tokens of a query that contains no other statement."""
    own, given = parse.reader.is_own, (parse.values.given, parse.values.place)
    if not own:
        check_tokens(tokens)
    check_commands_in_from(tokens)
    try:
        read = None
        if own:
            tree, read = _engine_tree(parse, tokens, Accepts(parse.files, parse.views))
        else:
            tree = _sqlglot_tree(parse, tokens)
    except SqlSyntaxError:
        other = _spark_text(parse, tokens) if parse.spark else None
        if isinstance(other, UnsupportedSqlError):
            raise other from None  # valid in Spark, and refused by icesql by name
        raise
    if not own:
        check_tree(tree, Accepts(parse.files, parse.views, calls=not parse.translated))
    check_depth(tree)
    spark = refused = None
    if parse.spark:
        # Evaluated lazily: the local engine never uses the text.
        later = copy(parse)
        later.values = copy(parse.values)
        spark = cache(lambda: _spark_text(later, tokens))
    first, last = span_of(tokens)
    edits = [
        Edit(each.start, each.end, LIST, each.values.sql, each.before, each.after)
        for each in parse.lists.values()
        if first <= each.start < last and not isinstance(each.values, int)
    ]
    columns, nodes = nameless_columns(tree)
    tree = parse.values.bind(tree, edits)
    references = take_references(tree, edits, parse.shown, seconds=parse.seconds)
    try:
        if parse.spark:
            # The local engine runs the tree, translated by the table of Spark's functions.
            check_spark_functions(tree)
    except Error as error:
        refused = error
    files = take_files(tree, edits) if parse.files and refused is None else ()
    text = parse.sql[first:last]
    words = UserText(text, first, (), columns, read, nodes).with_edits(edits) if own else None
    return Query(
        cast("exp.Expression", tree),
        references,
        text,
        files,
        first,
        spark,
        refused,
        words,
        translated=parse.translated,
        only_text=has_only_text(tree) if own else "",
        given=given,
        sources=parse.sources,
        notes=parse.notes,
    )


def _spark_text(parse: Parse, tokens: Tokens) -> Any:
    """Return the statement for the Spark engine, or the error that prevents running it there."""
    from icesql.sql.spark_sql import spark_text

    try:
        # sqlglot's own interpretation of Spark's functions, for binding and pruning.
        tree = tree_of(parse, tokens, hidden=False)
        check_tree(tree, Accepts(parse.files, parse.views, calls=False))
        changes: list[Edit] = []
        given = ParameterReader(parse.values)
        tree = parse.values.bind(tree, [])
        references = take_references(tree, changes, parse.shown, seconds=parse.seconds)
        for each in references:
            if each.shown is not None:
                name = "SHOW" if each.name.startswith(PREFIX) else each.name
                what = f"{name} as a table on the Spark engine"
                raise unsupported(what, each.offset, "SET engine = local")
        found = spark_text(
            parse.sql,
            tokens,
            lambda blanked: tokenize(blanked, parse.reader),
            cast("exp.Expression", tree),
            references,
            changes,
            given,
        )
        given.check()
    except Error as error:
        return error
    return found


def tree_of(parse: Parse, tokens: Tokens, *, hidden: bool = True) -> exp.Expr:
    """Return the tree of a query.

    ``hidden``: a call of a dialect with a function table stays a name and its arguments.
    """
    if parse.reader.is_own:
        return _engine_tree(parse, tokens, Accepts(parse.files, calls=False))[0]
    return _sqlglot_tree(parse, tokens, hidden=hidden)


def _engine_tree(parse: Parse, tokens: Tokens, accepts: Accepts) -> tuple[exp.Expr, ParsedText]:
    """Return the tree from DuckDB's parser, and the parsed text."""
    sql = parse.sql

    def operand(value: Tokens) -> tuple[exp.Expr | None, int]:
        found = read_constant(value)
        if found is not None:
            node, last = found[0].node(), value[found[1] - 1]
            next(node.find_all(exp.Literal), node).meta.update(start=last.start, end=last.stop - 1)
            return node, found[1]
        for before, after in pairwise(value):
            if before.kind == after.kind == TEXT:  # sqlglot would join them
                raise syntax_error(f'unexpected "{after.text}"', after)
        from icesql.sql.parser.dialect import parse_operand

        return parse_operand(value, sql, parse.reader)

    try:
        travels = cut_travels(tokens, sql, operand)
    except ParseError as error:
        from icesql.sql.syntax_errors import parse_error

        raise parse_error(error, tokens, sql) from error
    text = engine_text(tokens, without_lists(sql, parse.lists), travels)
    # DuckDB's parser recurses on the caller's stack, also for each part of a chain.
    levels, deepest = nesting(tokens)
    deep = len(tokens) > _FEW_TOKENS or levels > SHALLOW
    read = partial(read_text, text, travels, accepts)
    try:
        engine_tree, tree = with_deep_stack(read, deep=True) if deep else read()
    except RecursionError:
        if not deep:
            raise  # the caller's stack is full; see ``parse._read``
        raise too_deep(deepest) from None
    except NotParsed as error:
        from icesql.sql.syntax_errors import mistake

        raise mistake(error.reason, tokens, sql, partial(begins_query, text)) from None
    _put_back(parse, tree, tokens)
    place_nodes(tree, tokens)
    return _selected(tree), ParsedText(engine_tree, text.sources)


def _sqlglot_tree(parse: Parse, tokens: Tokens, *, hidden: bool = True) -> exp.Expr:
    """Return sqlglot's tree for a query in another dialect."""
    from icesql.sql.other_spellings import in_steps, rewrite_tokens
    from icesql.sql.parser.dialect import parse_operand, parse_tokens, show_calls, subscript_base

    sql, reader = parse.sql, parse.reader
    dialect = parse.translated if hidden else ""

    def operand(value: Tokens) -> tuple[exp.Expr | None, int]:
        # Except for Spark, sqlglot interprets the functions of a time-travel clause.
        found, count = parse_operand(value, sql, reader, SPARK if dialect == SPARK else None)
        if found is not None and dialect:
            if found.find(exp.AtTimeZone, exp.FromTimeZone):
                # Trino's result is an instant, DuckDB's a local time.
                raise unsupported("AT TIME ZONE in a time to travel to", value[0], _ZONE_HINT)
            found.meta["dialect"] = dialect
        return found, count

    rewriting = rewrite_tokens(tokens, sql)
    levels, deepest = nesting(tokens)
    try:
        travels = cut_travels(in_steps(rewriting.tokens), sql, operand)
        parsed = partial(parse_tokens, travels.tokens, sql, reader, dialect or None)
        trees = with_deep_stack(parsed, deep=levels > SHALLOW)
    except ParseError as error:
        from icesql.sql.syntax_errors import parse_error

        raise parse_error(error, tokens, parse.sql) from error
    except RecursionError:
        raise too_deep(deepest) from None
    tree = trees[0] if len(trees) == 1 else None
    if tree is None:
        raise syntax_error("not a statement", tokens[0].start)
    if (own := tree.find(exp.Version, exp.HistoricalData)) is not None:
        raise unsupported(MISPLACED, own)
    travels.attach(tree)
    if dialect:
        show_calls(tree)
    rewriting.mend(tree, files=parse.files)
    _put_back(parse, tree, tokens)
    for bracket in tree.find_all(exp.Bracket):
        # The subscript stays as written, with the base it counts from; see dialect.py.
        if bracket.args.get("offset") is None:
            bracket.set("offset", subscript_base(parse.reader))
    tree = _selected(tree)
    if parse.spark:
        from icesql.sql.other_spellings import sort_once

        sort_once(tree)
    return tree


def _selected(tree: exp.Expr) -> exp.Expr:
    """Return ``SELECT * FROM`` a VALUES, and any other query as it is."""
    return exp.select("*").from_(tree, copy=False) if isinstance(tree, exp.Values) else tree


def _put_back(parse: Parse, tree: exp.Expr, tokens: Tokens) -> None:
    first, last = span_of(tokens)
    own = [start for start in parse.lists if first <= start < last]
    if own and put_back(tree, parse.lists) != len(own):
        raise unsupported("a long list of literals at this place", own[0])
