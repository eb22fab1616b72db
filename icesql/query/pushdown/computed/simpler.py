"""Simpler conditions that a condition implies: comparisons of columns, ranges and prefixes.

If a condition is true for a row, the result is true for it too. The converse need not hold, and
the two may differ in the rows for which they are false or NULL.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product
from typing import Final

from icesql.iceberg import types as t
from icesql.query.pushdown.computed.expression import (
    COMPARISONS,
    FALSE,
    FLIPPED,
    OPPOSITE,
    TRUE,
    Expression,
    call,
    conjunction,
    string,
    whole,
)

# ------------------------------------------------------------------ prefixes


# Characters other than letters of ASCII whose lower() or upper() is one: dotted capital I, Kelvin
# sign, dotless i, long s. A test compares this list with the engine.
TO_LOWER: Final = {"i": "\u0130", "k": "\u212a"}
TO_UPPER: Final = {"I": "\u0131", "S": "\u017f"}
# The special characters of LIKE and of GLOB.
WILDCARDS: Final = "%_"
GLOB: Final = "*?[\\"
_MOST_TEXTS: Final = 16
_PLAIN: Final = frozenset(" !\"#%&',-/:;<=>@_`~")


def folded_prefixes(way: str, inner: Expression, text: str, *, whole: bool) -> Expression | None:
    """A condition on the prefixes of texts whose lower() or upper() is ``text`` or starts with it.

    ``whole``: equals ``text``, not only starts with it. ``way`` "ilike" ignores case.
    None if nothing is implied.
    """
    choices: list[str] = []
    count = 1
    for character in text:
        others = _others(way, character)
        if others == "":
            return FALSE  # such as an upper case letter, which lower() never returns
        if others is None or count * len(others) > _MOST_TEXTS:
            break
        count *= len(others)
        choices.append(others)
    if not choices:
        return None
    exact = whole and len(choices) == len(text)
    found = ["".join(each) for each in product(*choices)]
    name = "=" if exact else "starts_with"
    return conjunction("or", [call(name, inner, string(each)) for each in found])


def _others(way: str, character: str) -> str | None:
    """The characters that map to this one; None if that is not known, "" if there are none."""
    if not character.isascii():
        return None
    if not character.isalpha():
        return character
    low, high = character.lower(), character.upper()
    if way == "upper":
        return low + high + TO_UPPER.get(high, "") if character == high else ""
    if way == "ilike" or character == low:
        return low + high + TO_LOWER.get(low, "")
    return ""


def before_any(pattern: str, special: str) -> str:
    """The text before the first of these special characters of a pattern."""
    end = min((at for at in map(pattern.find, special) if at >= 0), default=len(pattern))
    return pattern[:end]


def regex_prefix(pattern: str, *, anchored: bool) -> str:
    """The literal prefix of every match of a regular expression.

    ``anchored``: it matches whole texts; else it has to start with ``^``. Patterns with ``|`` have
    no prefix, because the ends of alternatives are not parsed.

    >>> regex_prefix("^abc+d*e", anchored=False), regex_prefix("abc", anchored=False)
    ('abc', '')
    """
    if not pattern.startswith("^") and not anchored:
        return ""
    rest = pattern.removeprefix("^")
    if "|" in pattern:
        return ""
    prefix = ""
    for at, character in enumerate(rest):
        if not character.isascii() or not (character.isalnum() or character in _PLAIN):
            break
        if rest[at + 1 : at + 2] in ("*", "?", "{"):
            break
        prefix += character
    return prefix


# ------------------------------------------------------------------ conditions


_LISTS: Final = ("list_contains", "list_has", "array_contains", "array_has", "contains")
_STARTS: Final = ("starts_with", "prefix", "^@")
_PLACES: Final = ("position", "instr", "strpos")
_NEGATED: Final = {
    **OPPOSITE, "and": "or", "or": "and", "is null": "is not null", "is not null": "is null",
    "~~": "!~~", "!~~": "~~", "is distinct from": "is not distinct from",
    "is not distinct from": "is distinct from",
}  # fmt: skip
_TRUTHS: Final = frozenset({*COMPARISONS, "and", "or", "not", "between", "in", "is null",
                            "is not null", "~~", "!~~", "~~*", "starts_with"})  # fmt: skip
_MOST_ITEMS: Final = 50
_PLAIN_ITEMS: Final = ("INTEGER", "STRING", "BOOLEAN", "NULL")
# A comparison with a larger expansion is kept: nested calls may double it at each level.
_MOST_FORMS: Final = 256
_COMPARING: Final = (*COMPARISONS, "in", "between")
_PLAIN_CASTS: Final = ("DATE", "TIMESTAMP", "TIMESTAMPTZ")


def simpler(condition: Expression, *, negated: bool = False) -> Expression:
    """A simpler condition implied if ``condition`` is true (``negated``: if it is false)."""
    name, parts = condition.name, condition.arguments
    name = _NEGATED.get(name, name) if negated else name
    match name:
        case "in" if not negated and _are_rows(*parts):
            return conjunction("or", [_rows("=", parts[0], each) for each in parts[1:]])
        case _ if name in _COMPARING and sum(map(_forms, parts)) > _MOST_FORMS:
            return _kept(condition, negated=negated)
        case "and" | "or":
            return conjunction(name, [simpler(each, negated=negated) for each in parts])
        case "not":
            return simpler(parts[0], negated=not negated)
        case "is null" | "is not null":
            return Expression(name, parts)
        case "in":
            if len(parts) > _MOST_ITEMS or not have_one_type(parts[1:]):
                return _kept(condition, negated=negated)
            operation, word = ("<>", "and") if negated else ("=", "or")
            return conjunction(word, [_compared(operation, parts[0], each) for each in parts[1:]])
        case "between" if parts[1] == parts[2] and parts[1].is_free:
            return _compared("<>" if negated else "=", *parts[:2])
        case "between" if have_one_type(parts[1:]):
            bounds = [_compared("<" if negated else ">=", parts[0], parts[1]),
                      _compared(">" if negated else "<=", parts[0], parts[2])]  # fmt: skip
            return conjunction("or" if negated else "and", bounds)
        case "case":
            # A branch's value matters only if its condition is true.
            return conjunction("or", _branches(condition, lambda v: simpler(v, negated=negated)))
        case "literal" if condition.value[0] == "BOOLEAN":
            return TRUE if (condition.value[1] == "true") != negated else FALSE
        case "is not distinct from" | "is distinct from":
            return _of_truth(name, *parts) or Expression(name, parts)
        case "~~" if parts[0].name in ("lower", "upper") and parts[1].text is not None:
            (inner,), text = parts[0].arguments, parts[1].text
            prefix = before_any(text, WILDCARDS)
            found = folded_prefixes(parts[0].name, inner, prefix, whole=prefix == text)
            return found or Expression(name, parts)
        case "~~" | "!~~":
            return Expression(name, parts)
        case _ if name in COMPARISONS:
            return _compared(name, *parts)
        case _:
            return _kept(condition, negated=True) if negated else _function(condition)


def _forms(side: Expression) -> int:
    """The approximate number of comparisons in the expansion of a side: each abs() doubles it."""
    parts = side.arguments
    match side.name:
        case "abs" | "greatest" | "least":
            return 2 * sum(map(_forms, parts))
        case "case" | "coalesce" | "nullif" | "+" | "-" | "*" | "row" | "date_add":
            return sum(map(_forms, parts))
        case name if name in COMPARISONS:  # a condition of CASE
            return sum(map(_forms, parts))
        case _:
            return 1


def _kept(condition: Expression, *, negated: bool) -> Expression:
    return call("not", condition) if negated else condition


def _branches(case: Expression, of: Callable[[Expression], Expression]) -> list[Expression]:
    """For each branch of a CASE, its condition and the condition ``of`` its value."""
    *pairs, otherwise = case.arguments
    conditions, values = pairs[::2], pairs[1::2]
    return [
        call("and", simpler(condition), of(value))
        for condition, value in zip(conditions, values, strict=True)
    ] + [of(otherwise)]


def _of_truth(name: str, left: Expression, right: Expression) -> Expression | None:
    """``x IS [NOT] TRUE`` and FALSE, which DuckDB parses as IS [NOT] DISTINCT FROM; else None."""
    if right not in (TRUE, FALSE):
        return None
    inner = left.arguments[0] if left.name == "cast" and left.value == "BOOLEAN" else left
    is_bare = inner.is_column(t.BooleanType)
    if name == "is not distinct from":
        is_known = is_bare or inner.name in _TRUTHS
        return simpler(inner, negated=right == FALSE) if is_known else None
    # It is the other truth, or NULL because its only column is NULL.
    sides = (inner,) if is_bare else inner.arguments if inner.name in COMPARISONS else ()
    columns = [each for each in sides if each.name == "input"]
    known = [each for each in sides if each.name == "literal" and each.value[0] != "NULL"]
    if len(columns) != 1 or len(known) != len(sides) - 1:
        return None
    return call("or", simpler(inner, negated=right == TRUE), call("is null", *columns))


# ------------------------------------------------------------------ comparisons


def _compared(operation: str, left: Expression, right: Expression) -> Expression:
    if left.is_free and not right.is_free:
        left, right, operation = right, left, FLIPPED[operation]
    whole_condition = call(operation, left, right)
    if operation == "=" and left.name == "row" and _have_one_width(left, right):
        return _rows(operation, left, right)
    if not right.is_free:
        return whole_condition
    if right.name == "literal" and right.value[0] == "BOOLEAN" and left.name in (*_TRUTHS, "case"):
        if operation in ("=", "<>"):
            return simpler(left, negated=(right.value[1] == "true") != (operation == "="))
        return whole_condition

    def of(part: Expression) -> Expression:
        return _compared(operation, part, right)

    parts = left.arguments
    match left.name:
        case "case" if have_one_type((*parts[1:-1:2], parts[-1])):
            return conjunction("or", _branches(left, of))
        case "case" if _is_guarded(left):
            # A file with a row that raises the error must not be skipped.
            year, low, high = parts[0].arguments
            raises = [call("<", year, low), call(">", year, high)]
            return conjunction("or", [of(parts[1]), *raises])
        case "coalesce" if have_one_type(parts):
            return _coalesced(parts, of)
        case "nullif" if len(parts) == 2 and have_one_type(parts):
            return of(parts[0])
        case "abs" if len(parts) == 1 and right.text is None:
            return _absolute(operation, parts[0], right) or whole_condition
        case "greatest" | "least" if parts and have_one_type(parts):
            return _extreme(operation, left, right)
        case "+" | "-" | "*":
            return _solved(operation, left, right) or whole_condition
        case "row" if _have_one_width(left, right):
            return _rows(operation, left, right)
        case "date_add" if len(parts) == 2:
            return of(call("+", *parts))
        case "||" | "concat" if len(parts) == 2 and operation == "=":
            return _joined(left, right) or whole_condition
        case "cast" if left.value == "VARCHAR" and operation == "=" and right.text is not None:
            return _written_as(parts[0], right.text) or whole_condition
        case "lower" | "upper" if len(parts) == 1 and operation == "=" and right.text is not None:
            return folded_prefixes(left.name, parts[0], right.text, whole=True) or whole_condition
        case "array_extract" | "array_slice" if 1 < len(parts) < 4 and parts[1].whole_number == 1:
            end = parts[-1].whole_number
            if end is None or end < 1 or not parts[0].is_column(t.StringType):
                return whole_condition
            return of(call("left", parts[0], whole(end)))
        case name if name in _PLACES and len(parts) == 2 and operation == "=":
            if right.whole_number == 1 and parts[1].text:
                return call("starts_with", *parts)
            return whole_condition
        case _:
            return whole_condition


def _is_guarded(case: Expression) -> bool:
    """Match ``CASE WHEN year(x) BETWEEN … THEN f(x) WHEN NOT x IS NULL THEN error(…) END``."""
    if len(case.arguments) != 5:
        return False
    inside, _, outside, raised, otherwise = case.arguments
    if inside.name != "between" or inside.arguments[0].name != "year":
        return False
    missing = call("is null", *inside.arguments[0].arguments)
    return (
        outside == call("not", missing) and raised.name == "error" and _type_of(otherwise) == "NULL"
    )


def _solved(operation: str, left: Expression, right: Expression) -> Expression | None:
    """Move exact arithmetic to the other side: ``id + 1 > 10`` becomes ``id > 10 - 1``."""
    flipped = FLIPPED[operation]
    if len(left.arguments) == 1:
        if left.name == "+":
            return _compared(operation, left.arguments[0], right)
        exact = _is_exact(left) and _is_exact(right)
        return _compared(flipped, left.arguments[0], call("-", right)) if exact else None
    one, two = left.arguments
    inner, known = (one, two) if two.is_free else (two, one)
    if not known.is_free:
        return None
    if left.name == "*":
        return _divided(operation, inner, known.whole_number, right.whole_number)
    exact, day = _is_exact(left) and _is_exact(right), inner.is_column(t.DateType)
    date = _as_date(right) if day and known.whole_number is not None else None
    if date is not None and (left.name == "+" or two is known):
        return _compared(operation, inner, call("-" if left.name == "+" else "+", date, known))
    if left.name == "+":
        return _compared(operation, inner, call("-", right, known)) if exact else None
    days_between = day and _type_of(known) == "DATE" and right.whole_number is not None
    if not exact and not days_between:
        return None
    if two is known:
        return _compared(operation, inner, call("+", known, right))
    return _compared(flipped, inner, call("-", known, right))


def _as_date(part: Expression) -> Expression | None:
    """A constant compared with a date, as a date; None if it is not one."""
    if part.text is not None:
        return Expression("cast", (part,), "DATE")
    return part if _type_of(part) == "DATE" else None


def _divided(
    operation: str, inner: Expression, factor: int | None, product: int | None
) -> Expression | None:
    """An integer column times ``factor``, compared with ``product``."""
    if not inner.is_column(t.IntegerType, t.LongType) or not factor or product is None:
        return None
    quotient, rest = divmod(product, factor)
    operation = FLIPPED[operation] if factor < 0 else operation
    if rest and operation == "=":
        return FALSE
    if rest and operation == "<>":
        return call("is not null", inner)
    return _compared({"<": "<=", ">=": ">"}.get(operation, operation) if rest else operation,
                     inner, whole(quotient))  # fmt: skip


def _is_exact(part: Expression) -> bool:
    """Whether an expression has only integers and decimals, and so no rounding."""
    match part.name:
        case "+" | "-" | "*":
            return all(map(_is_exact, part.arguments))
        case "cast":
            return _type_of(part).startswith(("DECIMAL", "INTEGER", "BIGINT")) and part.is_free
        case _:
            return _type_of(part) in ("INTEGER", "DECIMAL")


def _coalesced(parts: tuple[Expression, ...], of: Callable[[Expression], Expression]) -> Expression:
    """The first argument that is not NULL satisfies the condition."""
    found: list[Expression] = []
    before: list[Expression] = []
    for part in parts:
        found.append(conjunction("and", [*before, of(part)]))
        before.append(call("is null", part))
    return conjunction("or", found)


def _absolute(operation: str, inner: Expression, right: Expression) -> Expression | None:
    if operation == "<>":
        return None
    other = _compared(FLIPPED[operation], inner, call("-", right))
    word = "and" if operation in ("<", "<=") else "or"
    return call(word, _compared(operation, inner, right), other)


def _extreme(operation: str, left: Expression, right: Expression) -> Expression:
    """greatest() and least(), which ignore NULL."""
    reaching, limiting = (">", "<") if left.name == "greatest" else ("<", ">")
    some = [_compared(operation, each, right) for each in left.arguments]

    def every(limit: str) -> Expression:
        return conjunction("and", [
            call("or", _compared(limit, each, right), call("is null", each))
            for each in left.arguments
        ])  # fmt: skip

    if operation == "=":
        return call("and", conjunction("or", some), every(f"{limiting}="))
    if operation.startswith(reaching):
        return conjunction("or", some)
    if operation.startswith(limiting) and operation != "<>":
        return every(operation)
    return call(operation, left, right)


def _have_one_width(*rows: Expression) -> bool:
    return len({(each.name, len(each.arguments)) for each in rows}) == 1


def _are_rows(operand: Expression, *items: Expression) -> bool:
    """Whether all items are rows of constants, with one type for each column of the operand.

    The engine converts the values of a list with mixed types.
    """
    columns = zip(*(item.arguments for item in items), strict=False)
    return (
        operand.name == "row"
        and _have_one_width(operand, *items)
        and all(item.is_free for item in items)
        and all(len(found) <= 1 and "" not in found for found in map(_types, columns))
    )


def _rows(operation: str, left: Expression, right: Expression) -> Expression:
    """Compare rows by their first values only; NULL is the greatest of them."""
    first, known = left.arguments[0], right.arguments[0]
    match operation:
        case "=":
            pairs = zip(left.arguments, right.arguments, strict=True)
            return conjunction("and", [_equal(one, two) for one, two in pairs])
        case ">" | ">=":
            return call("or", _compared(">=", first, known), call("is null", first))
        case "<" | "<=" if known.name == "literal" and known.value[0] != "NULL":
            return _compared("<=", first, known)
        case _:
            return call(operation, left, right)


def _written_as(inner: Expression, text: str) -> Expression | None:
    """The column as an integer whose text is ``text``, None if it cannot be."""
    if not inner.is_column(t.IntegerType, t.LongType):
        return None
    if not re.fullmatch(r"(?a)0|-?[1-9]\d{0,17}", text):
        return None
    return call("=", inner, whole(int(text)))


def _equal(one: Expression, two: Expression) -> Expression:
    """Parts of equal rows are equal or both NULL."""
    if two.name == "literal":
        return call("is null", one) if two.value[0] == "NULL" else _compared("=", one, two)
    return call("is not distinct from", one, two)


def _types(parts: tuple[Expression, ...]) -> set[str]:
    return {_type_of(each) for each in parts} - {"NULL"}


def have_one_type(parts: tuple[Expression, ...]) -> bool:
    """Whether the engine compares each of these as it would without the others.

    Values of different types are first converted to a common type.
    """
    found = _types(parts)
    return (len(found) <= 1 and "" not in found) or found == {"INTEGER", "DECIMAL"}


def _are_plain(items: tuple[Expression, ...]) -> bool:
    """Whether a list function compares its value with each of these items separately.

    Other items are converted together with the value to one type, which rounds decimals.
    """
    return all(
        each.value[0] in _PLAIN_ITEMS
        if each.name == "literal"
        else each.name == "cast" and each.is_free and each.value in _PLAIN_CASTS
        for each in items
    )


def _type_of(part: Expression) -> str:
    match part.name:
        case "literal":
            kind, text = part.value
            if kind == "NUMERIC":
                return "DOUBLE" if "e" in text.lower() else "DECIMAL"
            return str(kind)
        case "input":
            return _TYPE_NAMES.get(type(part.value.type), "")
        case "cast":
            return str(part.value)
        case "+" | "-" if len(part.arguments) == 2 and _type_of(part.arguments[0]) == "DATE":
            return "DATE" if _type_of(part.arguments[1]) == "INTEGER" else ""
        case _:
            return ""


_TYPE_NAMES: Final[dict[type[t.IcebergType], str]] = {
    t.IntegerType: "INTEGER",
    t.LongType: "INTEGER",
    t.DecimalType: "DECIMAL",
    t.StringType: "STRING",
    t.DateType: "DATE",
    t.BooleanType: "BOOLEAN",
    t.TimestampType: "TIMESTAMP",
}


def _joined(left: Expression, right: Expression) -> Expression | None:
    """Solve ``x || 'end' = text`` and ``'start' || x = text``; None for others."""
    one, two = left.arguments
    text = right.text
    if text is None:
        return None
    if two.text is not None and one.is_column(t.StringType):
        inner, fits, rest = one, text.endswith(two.text), text[: len(text) - len(two.text)]
    elif one.text is not None and two.is_column(t.StringType):
        inner, fits, rest = two, text.startswith(one.text), text[len(one.text) :]
    else:
        return None
    found = _compared("=", inner, string(rest)) if fits else FALSE
    if left.name == "||":
        return found
    return call("or", found, call("is null", inner))  # concat() ignores NULL


# ------------------------------------------------------------------ functions that are conditions


def _function(condition: Expression) -> Expression:
    parts = condition.arguments
    if len(parts) != 2:
        return condition
    inner, other = parts
    text = other.text
    match condition.name:
        case name if name in _STARTS:
            return call("starts_with", inner, other)
        case name if name in _LISTS and inner.name == "list_value" and _are_plain(inner.arguments):
            return simpler(Expression("in", (other, *inner.arguments)))
        case "~~*" if text is not None:
            prefix = before_any(text, WILDCARDS)
            return folded_prefixes("ilike", inner, prefix, whole=False) or condition
        case "~~~" if text is not None:
            prefix = before_any(text, GLOB)
            return call("starts_with", inner, string(prefix)) if prefix else condition
        case "regexp_matches" | "regexp_full_match" if text is not None:
            prefix = regex_prefix(text, anchored=condition.name == "regexp_full_match")
            return call("starts_with", inner, string(prefix)) if prefix else condition
        case _:
            return condition
