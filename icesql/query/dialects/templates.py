"""Templates of DuckDB expressions: trees with gaps, and how arguments fill them."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from itertools import count, islice
from typing import Final

from sqlglot import exp

from icesql.sql.lexer import reading
from icesql.sql.parser.dialect import parse_text, subscript_base
from icesql.sql.parser.own_calls import show_calls

# Arguments that may be repeated in an expression; others are bound to a variable.
_SIMPLE: Final = (exp.Column, exp.Literal, exp.Boolean, exp.Null, exp.Identifier, exp.Dot)
# The number of nodes from which an argument is bound to a variable, not copied.
_LARGE: Final = 500
_LET: Final = "value_of_{}"
_DOLLAR: Final = re.compile(r"\$(\d+)")
_GAP: Final = re.compile(r"_\d+")


def template(text: str, *, exact: bool = True) -> exp.Expr:
    """A new tree of an expression in DuckDB's SQL with ``$1``, ``$2`` … for its arguments.

    ``exact`` keeps every function call as written; otherwise the tree is the same as for a user's
    text, so that conditions on it can prune.
    """
    return _parsed(text, exact).copy()


@functools.lru_cache(2_000)
def _parsed(text: str, exact: bool) -> exp.Expr:
    dialect = reading(None)
    # In DuckDB a dollar starts a quoted string, so gaps are parsed as names.
    source = "SELECT " + _DOLLAR.sub(r"_\1", text)
    (tree,) = parse_text(source, dialect, "" if exact else None)
    assert isinstance(tree, exp.Select)
    show_calls(tree)
    (found,) = tree.expressions
    for bracket in found.find_all(exp.Bracket):
        bracket.set("offset", subscript_base(dialect))
    for node in found.walk():
        # Offsets in the template are not offsets in the user's text.
        node.meta.clear()
    popped: exp.Expr = found.pop()
    return popped


def name_apart(tree: exp.Expr, arguments: Sequence[exp.Expr]) -> None:
    """Rename variables of the template's lambdas that are also names in its arguments.

    Arguments are put inside the lambdas, where these variables would capture their names. Variables
    that begin with "own_" are unique by convention and are not renamed.
    """
    functions = list(tree.find_all(exp.Lambda))
    if not functions:
        return
    taken = {each.name.lower() for part in arguments for each in part.find_all(exp.Identifier)}
    for function in functions:
        for variable in list(function.expressions):
            name = variable.name
            if name.lower() in taken and not name.startswith("own_"):
                numbered = (f"{name}_{number}" for number in count(1))
                fresh = next(each for each in numbered if each.lower() not in taken)
                for each in list(function.find_all(exp.Identifier)):
                    if each.name == name:
                        each.set("this", fresh)


def filled(tree: exp.Expr, arguments: Sequence[exp.Expr], *, once: bool = True) -> exp.Expr:
    """``tree`` with its gaps filled.

    With ``once`` an argument that is used twice and not simple is evaluated once, as the variable
    of a lambda: DuckDB has no other way to name a value in an expression. Without it only large
    arguments are, because nested calls would double in size at each level.
    """
    name_apart(tree, arguments)
    gaps: dict[int, list[exp.Expr]] = {}
    for node in _gaps(tree):
        gaps.setdefault(int(node.name[1:]), []).append(node)
    named: list[tuple[str, exp.Expr]] = []
    for number, places in gaps.items():
        argument = arguments[number - 1]
        if len(places) > 1 and (not _is_simple(argument) if once else _is_large(argument)):
            name = _LET.format(_fresh(tree, *arguments))
            named.append((name, argument))
            argument = exp.to_identifier(name)
        for place in places:
            made = _in_parentheses(argument.copy() if len(places) > 1 else argument, place)
            if place is tree:
                tree = made
            else:
                place.replace(made)
    for name, argument in named:
        tree = let(name, argument, tree)
    # Its own place may be beside an operator that would regroup it.
    return exp.Paren(this=tree) if _is_operator(tree) else tree


def _gaps(tree: exp.Expr) -> list[exp.Expr]:
    return [each for each in tree.find_all(exp.Column) if _GAP.fullmatch(each.name)]


def let(name: str, value: exp.Expr, body: exp.Expr) -> exp.Expr:
    """``body`` with ``value`` bound to the identifier ``name``."""
    made = template("list_transform([$1], lambda x: $2)[1]")
    function = next(made.find_all(exp.Lambda))
    function.set("expressions", [exp.to_identifier(name)])
    first, second = sorted(_gaps(made), key=lambda each: each.name)
    first.replace(value)
    second.replace(body)
    return made


def _fresh(*parts: exp.Expr) -> int:
    """The first number whose variable name does not occur in these expressions."""
    names = {each.name.lower() for part in parts for each in part.find_all(exp.Identifier)}
    return next(number for number in range(1, 10_000) if _LET.format(number) not in names)


def _is_simple(node: exp.Expr) -> bool:
    if isinstance(node, exp.Cast | exp.Paren | exp.Neg):
        return _is_simple(node.this)
    return isinstance(node, _SIMPLE) and not node.find(exp.Func)


def _is_large(node: exp.Expr) -> bool:
    return next(islice(node.walk(), _LARGE, None), None) is not None


def _in_parentheses(node: exp.Expr, place: exp.Expr) -> exp.Expr:
    """The node, in parentheses if an operator of the template could regroup it."""
    outside = isinstance(
        place.parent,
        exp.Binary | exp.Unary | exp.Cast | exp.Between | exp.In | exp.Bracket | exp.Dot | exp.Is,
    )
    loose = _is_operator(node) or isinstance(node, exp.Case | exp.Lambda | exp.Interval)
    return exp.Paren(this=node) if outside and loose else node


def _is_operator(node: exp.Expr) -> bool:
    operators = exp.Binary | exp.Unary | exp.Between | exp.In | exp.Is
    return isinstance(node, operators) and not isinstance(node, exp.Paren | exp.Dot)


def call(name: str, *arguments: exp.Expr) -> exp.Expr:
    """A call of a DuckDB function with exactly this name."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def duckdb(text: str, *arguments: exp.Expr | str, exact: bool = True) -> exp.Expr:
    """The expression ``text`` with its gaps filled; see ``filled``. A text is its literal."""
    return filled(template(text, exact=exact), list(map(exp.convert, arguments)))


def chained(text: str, parts: Sequence[exp.Expr]) -> exp.Expr:
    """The expression ``text`` of the first two parts, then of that and the third, and so on."""
    return functools.reduce(lambda made, each: duckdb(text, made, each), parts)


def expanded(text: str, *arguments: exp.Expr | str, exact: bool = True) -> exp.Expr:
    """The expression ``text`` with a copy of the argument in each of its gaps.

    Large arguments are bound to a variable; see ``filled``.
    """
    copies = [exp.convert(each, copy=True) for each in arguments]
    return filled(template(text, exact=exact), copies, once=False)
