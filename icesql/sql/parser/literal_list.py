"""Cut long lists of literals out of the text before parsing, and keep each as one value.

A list of 100,000 literals becomes as many tokens and tree nodes, each copied and written several
times. In the text, one name of the same length replaces the list, so that offsets do not change;
the tree holds the list as one value. The engine runs the user's own text.

``x = 1 OR x = 2 OR …`` and ``x <> 1 AND x <> 2 AND …`` are read as ``x = 1 OR x = 2 OR x IN (…) OR
x = 9``: a term with the same operator on both sides is not part of another expression.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any, Final

from icesql.frozen import Frozen
from icesql.quoting import literal
from icesql.sql.lexer import Dialect, pieces
from icesql.sql.trees import exp

# Shorter lists are parsed normally.
SHORTEST: Final = 100
SHOWN: Final = 10

MARK: Final = "__icesql_literals"
_NUMBER: Final = r"-?(?:[0-9]{1,38}(?:\.[0-9]{0,38})?|\.[0-9]{1,38})"
_DATE: Final = r"(?i:DATE)\s*+'[0-9]{4}-[0-9]{2}-[0-9]{2}'"
_PLAIN_TEXT: Final = r"'[^'\\]*+'"
_DUCKDB_TEXT: Final = r"'(?:[^']++|'')*+'"
# A name without the characters that can precede a literal.
_NAME: Final = r"""(?:[A-Za-z_][A-Za-z_0-9]*+|"[^"'=<>,]++")"""


def _item(text: str) -> str:
    return rf"(?:{_NUMBER}|{text}|{_DATE}|(?i:NULL)\b|\?)"


def _items(text: str) -> str:
    """The pattern of an item after the start of the list, a comma or a comparison."""
    return rf"(?:\A|[,=>])\s*+({_item(text)})"


def _lists(text: str) -> str:
    item = _item(text)
    term = rf"\s*+(?P=operator)\s*+{item}(?(open)\s*+\))"
    following = r"\s++(?P=joined)\s++(?(open)\(\s*+)(?P=column)"
    return (
        rf"\b(?i:IN)\s*+\(\s*+(?P<items>{item}(?:\s*+,\s*+{item})*+)(?=\s*+\))|"
        rf"\b(?P<joined>(?i:OR|AND))\s++(?P<open>\(\s*+)?(?P<column>{_NAME}(?:\.{_NAME})*+)"
        rf"\s*+(?P<operator>=|<>|!=)\s*+{item}(?(open)\s*+\)){following}"
        rf"(?P<terms>(?:{term}(?P<next>{following}))++)"
    )


_BASES: Final[tuple[tuple[type, Callable[[Any], Any]], ...]] = (
    (str, str.__str__),
    (int, int.__int__),
    (float, float.__float__),
)


class LiteralList(Frozen):
    """Values of one kind: ``integer`` (int), ``decimal`` (int and Decimal), ``text``, ``date``.

    None is NULL. ``date`` holds dates as text; each is a valid day. ``sql`` are the literals in
    DuckDB's spelling, which Spark shares except for a backslash in a text. ``shown`` are the first
    literals and the number of the others.
    """

    kind: str
    values: tuple[Any, ...]
    sql: str
    shown: str

    @property
    def has_null(self) -> bool:
        """True if NULL is among the values."""
        return None in self.values


class Cut(Frozen):
    """A replacement for the characters from ``start`` to ``end`` of the SQL.

    The replacement is ``before``, the list and ``after``. ``values`` is the number of ``?``
    parameters if the list consists of them.
    """

    values: LiteralList | int
    start: int
    end: int
    before: str = ""
    after: str = ""


def take_lists(sql: str, given: Any, dialect: Dialect) -> dict[int, Cut]:
    """Return the long lists of ``sql`` by the offsets of the names that replace them.

    Only literals that every dialect reads alike make a list. ``given`` are the values of the
    parameters. Texts may contain quotes and backslashes as DuckDB and the standard write them, but
    only in the default dialect. Lists inside a text or comment are ignored. Raises SqlSyntaxError
    for a quote or comment that does not end.
    """
    lists: dict[int, Cut] = {}
    # The shortest list has SHORTEST characters and as many commas or operators.
    if len(sql) <= 2 * SHORTEST:
        return lists
    text = _DUCKDB_TEXT if dialect.is_own else _PLAIN_TEXT
    at, pattern = 0, re.compile(_lists(text))
    while (found := pattern.search(sql, at)) is not None:
        before = pieces(sql, at, found.start(), dialect.name)
        at = max((end for _, _, end in before), default=at)
        if at > found.start():
            continue
        at = found.end()
        cut = _cut(found, re.findall(_items(text), found["items"] or found["terms"]))
        if cut is not None and not (cut.before and not _compares_alike(cut, sql, given)):
            lists[cut.start + len(cut.before)] = cut
    return lists


def without_lists(sql: str, lists: Mapping[int, Cut]) -> str:
    """Return the text with a name of the same length in place of each list."""
    kept, last = [], 0
    for name, cut in lists.items():
        room = cut.end - name - len(cut.after)
        kept += [sql[last : cut.start], cut.before, MARK.ljust(room), cut.after]
        last = cut.end
    return "".join([*kept, sql[last:]])


def put_back(tree: exp.Expr, lists: Mapping[int, Cut]) -> int:
    """Give the lists of ``tree`` their values; return the number of lists."""
    found = 0
    for node in list(tree.find_all(exp.In)):
        marks = node.expressions
        if len(marks) != 1 or not isinstance(marks[0], exp.Column) or marks[0].name != MARK:
            continue
        cut = lists.get(marks[0].this.meta.get("start", -1))
        if cut is None:
            continue
        node.meta["list"] = (cut.start, cut.end, cut.before, cut.after)
        if isinstance(cut.values, int):
            first = exp.Placeholder()
            first.meta["start"] = cut.start
            node.set("expressions", [first])
            node.set("parameters", cut.values)
        else:
            hold(node, cut.values)
        found += 1
    return found


def _cut(found: re.Match[str], items: Sequence[str]) -> Cut | None:
    values = _read(items) if len(items) >= SHORTEST else None
    if values is None:
        return None
    if found["items"]:
        return Cut(values, *found.span("items"))
    is_or = found["joined"].upper() == "OR"
    if is_or != (found["operator"] == "="):
        return None
    before, after = " IN (" if is_or else " NOT IN (", "))" if found["open"] else ")"
    return Cut(values, found.start("terms"), found.start("next"), before, after)


def _compares_alike(cut: Cut, sql: str, given: Any) -> bool:
    """True if IN with this list gives the same result as comparisons with each value.

    IN converts all values of a list to one type; a comparison converts to the type of its value.
    """
    values: LiteralList | int | None = cut.values
    if isinstance(values, int):
        # The values of the list are known only if every ? in the text is a parameter.
        if not isinstance(given, Sequence) or sql.count("?") != len(given):
            return False
        first = sql.count("?", 0, cut.start)
        values = list_of(given[first : first + values])
    if values is None or values.kind == "decimal":
        return False
    numbers = [each for each in values.values if isinstance(each, int)]
    return len({-(1 << 31) <= each < 1 << 31 for each in numbers}) < 2


def _read(items: Sequence[str]) -> LiteralList | int | None:
    """Return the list of these literals, or the number of parameters; None for mixed kinds."""
    heads = {each[0] for each in items}
    if heads == {"?"}:
        return len(items)
    heads -= {*"nN"}
    plain = [None if each[0] in "nN" else each for each in items]
    if heads <= {*"-.0123456789"}:
        return _numbers(plain, items)
    if heads == {"'"}:
        texts = [each and each[1:-1].replace("''", "'") for each in plain]
        return _list("text", texts, items)
    if heads <= {*"dD"}:
        return _dates([each and each[-11:-1] for each in plain], items)
    return None


def _list(kind: str, values: Iterable[Any], items: Sequence[str]) -> LiteralList:
    more = len(items) - SHOWN
    shown = ", ".join(items[:SHOWN]) + (f", … and {more:,} more" if more > 0 else "")
    return LiteralList(kind, tuple(values), ", ".join(items), shown)


def _numbers(texts: Iterable[str | None], items: Sequence[str]) -> LiteralList | None:
    values: list[int | Decimal | None] = []
    kind = "integer"
    for text in texts:
        if text is not None and "." in text:
            if len(text) > 38:
                return None
            values.append(Decimal(text))
            kind = "decimal"
        else:
            values.append(None if text is None else int(text))
    # Literals beyond 64 bits are not listed; beyond 128 bits a literal is a DOUBLE.
    if any(isinstance(each, int) and abs(each) >= 1 << 63 for each in values):
        return None
    return _list(kind, values, items)


def _dates(texts: Iterable[str | None], items: Sequence[str]) -> LiteralList | None:
    """Read days as ``YYYY-MM-DD``; None if one of them is not a valid date."""
    values = tuple(texts)
    try:
        for each in values:
            if each is not None:
                date.fromisoformat(each)
    except ValueError:
        return None
    return _list("date", values, items)


def base_value(value: Any) -> Any:
    """Return a text or a number as its built-in type, ignoring overrides of a subclass."""
    for kind, plain in _BASES:
        if isinstance(value, kind) and not isinstance(value, bool):
            return plain(value)
    return value


def list_of(values: Iterable[Any]) -> LiteralList | None:
    """Return Python values of one kind as a list; None for others, which become single nodes."""
    items = tuple(values)
    kinds = {type(each) for each in items} - {type(None)}
    if not kinds <= {int, str, date}:
        items = tuple(map(base_value, items))
        kinds = {type(each) for each in items} - {type(None)}
    if kinds == {int} and all(abs(each) < 1 << 63 for each in items if each is not None):
        return _list("integer", items, _written(items, str))
    if kinds == {str}:
        return _list("text", items, _written(items, literal))
    if kinds == {date}:
        days = [each and each.isoformat() for each in items]
        return _dates(days, _written(days, "DATE '{}'".format))
    return None


def _written(values: Sequence[Any], write: Callable[[Any], str]) -> list[str]:
    return ["NULL" if each is None else write(each) for each in values]


def hold(node: exp.In, values: LiteralList) -> None:
    """Make ``values`` the list of ``node``; its SQL shows only the first of them."""
    node.set("expressions", [exp.Var(this=values.shown)])
    node.set("literals", values)
    column: exp.Expr = node
    while column.parent is not None and not isinstance(column.parent, exp.Select | exp.Subquery):
        column = column.parent
    if column.arg_key == "expressions" and not isinstance(column, exp.Alias):
        # Without the alias the engine would name the result's column after the whole list.
        alias = exp.Alias(alias=exp.to_identifier(column.sql(dialect="duckdb"), quoted=True))
        alias.meta["is_ours"] = True
        column.replace(alias)
        alias.set("this", column)


def held(node: exp.Expr) -> LiteralList | None:
    """Return the list that ``hold`` gave to ``node``; None for any other node."""
    found = node.args.get("literals") if isinstance(node, exp.In) else None
    return found if isinstance(found, LiteralList) else None


def with_lists(tree: exp.Expr, sql: Callable[[exp.In, LiteralList], str]) -> exp.Expr:
    """Return a copy of ``tree`` with the result of ``sql`` in place of each list."""
    tree = tree.copy()
    for node in tree.find_all(exp.In):
        values = held(node)
        if values is not None:
            node.set("expressions", [exp.Var(this=sql(node, values))])
    return tree


def spread(tree: exp.Expr) -> None:
    """Turn the lists of ``tree`` into nodes, for code that reads only nodes."""
    for node in list(tree.find_all(exp.In)):
        values = held(node)
        if values is not None:
            from sqlglot import parse_one

            items = parse_one(f"[{values.sql}]", read="duckdb")
            for each in items.walk():
                each.meta.clear()  # offsets in another text
            node.set("literals", None)
            node.set("expressions", items.expressions)
