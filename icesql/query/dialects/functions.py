"""The function table of a dialect: find the row that accepts given types, and fill its template.

A row is ``name(types) -> type = expression``: the dialect's name, argument types and result type,
and the expression in DuckDB's SQL. The head of ``grammar/<dialect>_functions.txt`` explains it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import count, islice
from typing import Final

from msgspec import Struct, field
from sqlglot import exp

from icesql.frozen import Frozen
from icesql.query.dialects import types as t
from icesql.query.dialects.types import SqlType
from icesql.sql.grammar import SPARK, TableRow, table_rows
from icesql.sql.lexer import reading
from icesql.sql.parser.dialect import parse_text, show_calls, subscript_base

# ------------------------------------------------------------------ templates
# Trees of DuckDB expressions with gaps for arguments.


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


# ------------------------------------------------------------------ function tables


_WORDS: Final = re.compile(r"'[^']*'|[\w.]+|[<>,()]")
# The table of Spark's operators on times.
OPERATORS: Final = "spark_operator"
_SPARK_WORDS: Final = {
    "months": t.MONTHS.kind,
    "days": "interval day",
    "span": t.TIME_SPAN.kind,
    "ntz": t.NTZ.kind,
}
# Type names in the tables of Trino and Snowflake.
_STANDARD_WORDS: Final = {
    "integer": t.BIGINT.kind,
    "text": t.STRING.kind,
    "literal": t.STRING.kind,
    "timestamp": t.NTZ.kind,
    "timestamptz": t.TIMESTAMP.kind,
    "number": "N",
    "fraction": "F",
    "moment": "M",
    "local": "L",
    "instant": "P",
}
# Type variables that match only these kinds, and the type of a NULL argument.
_CLASSES: Final = {
    "N": (t.NUMERIC, t.DOUBLE),
    "I": (t.INTEGRAL, t.INT),
    "F": (t.FRACTIONAL, t.DOUBLE),
    "M": (t.MOMENTS, t.TIMESTAMP),
    "L": (("date", t.NTZ.kind), t.NTZ),
    "P": ((t.NTZ.kind, t.TIMESTAMP.kind), t.TIMESTAMP),
    "S": ((*t.SCALAR, t.UUID.kind), t.NULL),
}
# The classes to whose type an argument of another kind may be converted.
_READ: Final = ("N", "M", "P")
# The kind of a parameter that takes only the constants in its ``names``; "*" is any constant.
_CONSTANT: Final = "constant"
# The type to which an argument is converted for a parameter; None if the dialect refuses.
Conversion = Callable[[SqlType, SqlType], SqlType | None]


class Row(Frozen):
    """One signature of a function.

    ``takes`` are patterns of types, the last of which repeats if ``repeats``. ``text`` is DuckDB's
    expression with ``$1`` for the first argument, or with ``built`` the name of its builder.
    ``pruned``: the expression is parsed like a user's, so that conditions on it prune.
    ``kind`` is scalar, aggregate or window.
    """

    name: str
    takes: tuple[SqlType, ...]
    repeats: bool
    gives: SqlType
    text: str
    built: bool = False
    pruned: bool = False
    kind: str = "scalar"

    def tree(self, count: int) -> exp.Expr:
        """A new tree of DuckDB's expression for ``count`` arguments."""
        text = self.text
        if self.repeats:
            rest = ", ".join(f"${at}" for at in range(len(self.takes), count + 1))
            text = text.replace(", $*", f", {rest}" if rest else "").replace("$*", rest)
        return template(text, exact=not self.pruned)


class Match(Frozen):
    """A row that accepts the arguments, the type of each after conversion, and the result type."""

    row: Row
    takes: tuple[SqlType, ...]
    gives: SqlType


@functools.cache
def functions(dialect: str) -> dict[str, tuple[Row, ...]]:
    """The rows of a dialect's table by name in lower case, in the order of the file."""
    words = _SPARK_WORDS if dialect in (SPARK, OPERATORS) else _STANDARD_WORDS
    found: dict[str, list[Row]] = {}
    for each in table_rows(dialect):
        found.setdefault(each.name, []).append(_row(each, words))
    return {name: tuple(rows) for name, rows in found.items()}


def _row(row: TableRow, words: Mapping[str, str]) -> Row:
    patterns = _patterns(row.takes.removesuffix("..."), words)
    (gives,) = _patterns(row.gives, words)
    return Row(
        row.name,
        patterns,
        row.takes.endswith("..."),
        gives,
        row.text,
        built=row.sign == "@",
        pruned=row.sign == ":=",
        kind=row.section,
    )


def _patterns(text: str, words: Mapping[str, str]) -> tuple[SqlType, ...]:
    tokens, found = _WORDS.findall(text), []
    while tokens:
        found.append(_read(tokens, words))
        if tokens and tokens[0] == ",":
            del tokens[0]
    return tuple(found)


def _read(tokens: list[str], words: Mapping[str, str]) -> SqlType:
    word = tokens.pop(0)
    if word.startswith("'"):
        return SqlType(_CONSTANT, names=tuple(word.strip("'").upper().split("|")))
    kind = words.get(word, word)
    if not tokens or tokens[0] not in "<(":
        return SqlType(kind)
    closing = {"<": ">", "(": ")"}[tokens.pop(0)]
    if closing == ")":
        precision, _, scale, _ = tokens[:4]
        del tokens[:4]
        return SqlType(kind, int(precision), int(scale))
    names, parts = [], []
    while tokens[0] != closing:
        if kind == "struct":
            names.append(tokens.pop(0))
        parts.append(_read(tokens, words))
        if tokens[0] == ",":
            del tokens[0]
    del tokens[0]
    return SqlType(kind, parts=tuple(parts), names=tuple(names))


def takes_count(rows: Sequence[Row], count: int) -> bool:
    """True if one of the rows accepts this number of arguments."""
    return any(
        count == len(row.takes) or (row.repeats and count >= len(row.takes) - 1) for row in rows
    )


def resolve(
    rows: Sequence[Row],
    arguments: Sequence[SqlType],
    constants: Sequence[str | None],
    convert: Conversion,
    *,
    takes_unknown: bool = False,
) -> Match | None:
    """The first row that accepts these types unchanged, else the first that does after conversion.

    ``constants`` are the texts of the arguments that are constants. An unknown type matches only
    "any", with ``takes_unknown`` every pattern where only one row is left so.
    """
    for exact in (True, False):
        for row in rows:
            binding = _Binding(None if exact else convert)
            if (match := binding.match(row, arguments, constants)) is not None:
                return match
    if not takes_unknown:
        return None
    matches = [_Binding(convert, True).match(row, arguments, constants) for row in rows]
    found = [each for each in matches if each is not None]
    return found[0] if len(found) == 1 else None


def refused(
    rows: Sequence[Row], types: Sequence[str], constants: Sequence[str | None]
) -> tuple[list[str], str]:
    """Arguments that no row accepts, as an error shows them; a hint if rows take only constants."""
    names = [each.names[0] for row in rows for each in row.takes if each.kind == _CONSTANT]
    listed = [each for each in dict.fromkeys(names) if each != "*"]
    shown = [
        type if text is None or not listed else f"'{text}'"
        for type, text in zip(types, constants, strict=True)
    ]
    return shown, f"it takes {', '.join(listed)}" if listed else ""


class _Binding(Struct):
    """An attempt to bind arguments to a row, without conversions if ``convert`` is None."""

    convert: Conversion | None
    takes_unknown: bool = False
    variables: dict[str, SqlType] = field(default_factory=dict)

    def match(
        self, row: Row, arguments: Sequence[SqlType], constants: Sequence[str | None]
    ) -> Match | None:
        """The row with the types of these arguments, None if it does not accept them."""
        if not takes_count((row,), len(arguments)):
            return None
        takes = row.takes[: len(arguments)]
        takes += row.takes[-1:] * (len(arguments) - len(takes))
        pairs = list(zip(takes, arguments, strict=True))
        if not all(
            _is_among(constant, pattern.names)
            if pattern.kind == _CONSTANT
            else self._binds(pattern, each)
            for (pattern, each), constant in zip(pairs, constants, strict=True)
        ):
            return None
        wanted = tuple(
            each if pattern.kind in ("any", _CONSTANT) else self._filled(pattern, each)
            for pattern, each in pairs
        )
        return Match(row, wanted, self._filled(row.gives, None))

    def _binds(self, pattern: SqlType, argument: SqlType) -> bool:
        """True if a type fits a pattern; binds the variables of the pattern."""
        if pattern.kind == "any":
            return True
        if argument.kind == "unknown" and not self.takes_unknown:
            return pattern.kind == "unknown"
        if pattern.kind.isupper():
            return self._binds_variable(pattern.kind, argument)
        if argument.kind == "unknown":
            return True
        if pattern.parts:
            if argument.kind == "null":
                return self.convert is not None
            if argument.kind != pattern.kind or len(argument.parts) != len(pattern.parts):
                return False
            pairs = zip(pattern.parts, argument.parts, strict=True)
            return all(self._binds(inner, each) for inner, each in pairs)
        if argument.kind == pattern.kind:
            return True
        return self.convert is not None and self.convert(argument, pattern) is not None

    def _binds_variable(self, name: str, argument: SqlType) -> bool:
        if argument.kind == "unknown":
            self.variables[name] = argument
            return True
        kinds, of_null = _CLASSES.get(name, ((), t.NULL))
        if kinds and argument.kind not in kinds:
            readable = argument.kind == "null" or name in _READ
            converted = self.convert(argument, of_null) if self.convert and readable else None
            if converted is None:
                return False
            argument = converted
        bound = self.variables.get(name)
        if bound == t.UNKNOWN:
            return True
        found = argument if bound is None else t.common(bound, argument)
        if found is None or (self.convert is None and bound is not None and bound != argument):
            return False
        self.variables[name] = found
        return True

    def _filled(self, pattern: SqlType, argument: SqlType | None) -> SqlType:
        """A pattern with its variables replaced; ``decimal`` gets the digits of the argument."""
        if pattern.kind.isupper():
            return self.variables.get(pattern.kind, t.NULL)
        if pattern.parts:
            parts = tuple(self._filled(each, None) for each in pattern.parts)
            return SqlType(pattern.kind, parts=parts, names=pattern.names)
        if pattern.kind == "decimal" and not pattern.precision and argument is not None:
            found = self.convert(argument, pattern) if self.convert else argument
            return found or pattern
        return pattern


def _is_among(constant: str | None, names: Sequence[str]) -> bool:
    return constant is not None and (constant.upper() in names or "*" in names)
