"""Long IN lists of literals, taken out of the text before it is parsed and kept as one value.

A list of 100,000 literals is as many tokens and tree nodes, each copied and written again several
times. Its place in the text gets one name of the same length, so that every offset stays true; the
tree holds the list as one value beside its text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any, Final

from msgspec import Struct

from icesql.sql.lexer import Token
from icesql.sql.trees import exp

# Shorter lists are parsed as they are.
SHORTEST: Final = 100
SHOWN: Final = 10

MARK: Final = "__icesql_literals"
_NUMBER: Final = r"-?(?:[0-9]{1,38}(?:\.[0-9]{0,38})?|\.[0-9]{1,38})"
_DATE: Final = r"(?i:DATE)\s*'[0-9]{4}-[0-9]{2}-[0-9]{2}'"
_PLAIN_TEXT: Final = r"'[^'\\]*+'"
_DUCKDB_TEXT: Final = r"'(?:[^']++|'')*+'"
_START: Final = re.compile(r"(?i)\bIN\s*\(\s*")


def _list_of(item: str) -> str:
    item = rf"(?:{item}|(?i:NULL)\b)"
    return rf"(?:{item}\s*,\s*){{{SHORTEST - 1},}}+{item}(?=\s*\))"


def _pattern(text: str) -> re.Pattern[str]:
    kinds = {"number": _NUMBER, "text": text, "date": _DATE}
    lists = [f"(?P<{kind}>{_list_of(item)})" for kind, item in kinds.items()]
    lists.append(rf"(?P<parameters>(?:\?\s*,\s*){{{SHORTEST - 1},}}+\?(?=\s*\)))")
    return re.compile("|".join(lists), re.ASCII)


_LISTS: Final = _pattern(_PLAIN_TEXT)
_DUCKDB_LISTS: Final = _pattern(_DUCKDB_TEXT)
_ITEMS: Final = {
    "number": re.compile(r"[^\s,]+"),
    "text": re.compile(rf"{_DUCKDB_TEXT}|(?i:NULL)"),
    "date": re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}|(?i:NULL)"),
}

_BASES: Final[tuple[tuple[type, Callable[[Any], Any]], ...]] = (
    (str, str.__str__),
    (int, int.__int__),
    (float, float.__float__),
)


class LiteralList(Struct, frozen=True):
    """Values of one kind: ``integer`` (int), ``decimal`` (int and Decimal), ``text``, ``date``.

    None is NULL. ``date`` holds dates as text; every one is a day of the calendar.
    """

    kind: str
    values: tuple[Any, ...]

    @property
    def has_null(self) -> bool:
        """Whether NULL is among the values."""
        return None in self.values

    def written(self, values: Sequence[Any] | None = None) -> str:
        """The literals in DuckDB's spelling, which Spark shares but for a backslash in a text."""
        return ", ".join(map(self._literal, self.values if values is None else values))

    @property
    def shown(self) -> str:
        """The first literals and how many more there are."""
        first = self.written(self.values[:SHOWN])
        more = len(self.values) - SHOWN
        return f"{first}, … and {more:,} more" if more > 0 else first

    def nodes(self) -> Iterator[exp.Expr]:
        """The literals as nodes of a tree."""
        for value in self.values:
            yield self._node(value)

    def _literal(self, value: Any) -> str:
        match self.kind, value:
            case _, None:
                return "NULL"
            case "text", _:
                return "'" + str(value).replace("'", "''") + "'"
            case "date", _:
                return f"DATE '{value}'"
            case "decimal", Decimal():
                return f"{value:f}"
            case _:
                return str(value)

    def _node(self, value: Any) -> exp.Expr:
        match self.kind, value:
            case _, None:
                return exp.Null()
            case "text", _:
                return exp.Literal.string(value)
            case "date", _:
                return exp.Cast(this=exp.Literal.string(value), to=exp.DataType.build("DATE"))
            case _:
                text = self._literal(value)
                number = exp.Literal.number(text.removeprefix("-"))
                return exp.Neg(this=number) if text.startswith("-") else number


class Lists(Struct, frozen=True):
    """The long lists of a text: ``text`` without them, and the lists by where they began.

    A number means that many ``?`` parameters.
    """

    text: str
    lists: Mapping[int, LiteralList | int]
    ends: Mapping[int, int]

    def are_lists(self, tokens: Sequence[Token]) -> bool:
        """Whether every list stands between IN ( and ) as the tokens of ``text`` have it.

        What looks like a list inside of a text or comment does not.
        """
        found = 0
        for index in range(2, len(tokens) - 1):
            token = tokens[index]
            if token.start in self.lists and token.text == MARK:
                found += (
                    tokens[index - 2].word == "IN"
                    and tokens[index - 1].word == "("
                    and tokens[index + 1].word == ")"
                    and tokens[index + 1].start >= self.ends[token.start]
                )
        return found == len(self.lists)

    def put_back(self, tree: exp.Expr) -> int:
        """Give the lists of ``tree`` their values, and say how many there were."""
        found = 0
        for node in list(tree.find_all(exp.In)):
            marks = node.expressions
            if len(marks) != 1 or not isinstance(marks[0], exp.Column):
                continue
            start = marks[0].this.meta.get("start")
            values = self.lists.get(start) if marks[0].name == MARK else None
            node.meta["list"] = (start, self.ends.get(start))
            if isinstance(values, int):
                node.set("expressions", [exp.Placeholder()])
                node.set("parameters", values)
            elif values is not None:
                hold(node, values)
            else:
                continue
            found += 1
        return found


def take_lists(sql: str, *, duckdb: bool) -> Lists:
    """The long lists of ``sql``, whose literals every dialect reads alike.

    ``duckdb``: texts may hold quotes and backslashes as DuckDB and the standard write them.
    """
    lists: dict[int, LiteralList | int] = {}
    ends: dict[int, int] = {}
    pieces, last = [], 0
    pattern = _DUCKDB_LISTS if duckdb else _LISTS
    for start in _START.finditer(sql):
        found = pattern.match(sql, start.end())
        if found is None or start.start() < last:
            continue
        begin, end = found.span()
        values = _read(str(found.lastgroup), found[0])
        if values is None:
            continue
        lists[begin], ends[begin] = values, end
        pieces += [sql[last:begin], MARK.ljust(end - begin)]
        last = end
    return Lists("".join([*pieces, sql[last:]]) if lists else sql, lists, ends)


def _read(kind: str, text: str) -> LiteralList | int | None:
    if kind == "parameters":
        return text.count("?")
    items = _ITEMS[kind].findall(text)
    match kind:
        case "number":
            return _numbers(items)
        case "text":
            values = [each[1:-1].replace("''", "'") if each[0] == "'" else None for each in items]
            return LiteralList("text", tuple(values))
        case _:
            return dates(None if each[0] in "nN" else each for each in items)


def _numbers(items: Sequence[str]) -> LiteralList | None:
    values: list[int | Decimal | None] = []
    kind = "integer"
    for item in items:
        if "." in item:
            number = Decimal(item)
            if len(item) > 38:
                return None
            values.append(number)
            kind = "decimal"
        elif item[0] in "nN":
            values.append(None)
        else:
            values.append(int(item))
    # Beyond 128 bits a literal is a DOUBLE.
    if any(isinstance(each, int) and abs(each) >= 1 << 63 for each in values):
        return None
    return LiteralList(kind, tuple(values))


def dates(items: Iterable[str | None]) -> LiteralList | None:
    """Days as ``YYYY-MM-DD``; None when one of them is in no calendar."""
    values = tuple(items)
    try:
        for each in values:
            if each is not None:
                date.fromisoformat(each)
    except ValueError:
        return None
    return LiteralList("date", values)


def base_value(value: Any) -> Any:
    """A text or a number as its own class has it, without what a subclass makes of it."""
    for kind, plain in _BASES:
        if isinstance(value, kind) and not isinstance(value, bool):
            return plain(value)
    return value


def list_of(values: Iterable[Any]) -> LiteralList | None:
    """Python values of one kind as a list; None for others, which become nodes one by one."""
    items = tuple(values)
    kinds = {type(each) for each in items} - {type(None)}
    if not kinds <= {int, str, date}:
        items = tuple(map(base_value, items))
        kinds = {type(each) for each in items} - {type(None)}
    if kinds == {int} and all(abs(each) < 1 << 63 for each in items if each is not None):
        return LiteralList("integer", items)
    if kinds == {str}:
        return LiteralList("text", items)
    if kinds == {date}:
        return dates(None if each is None else each.isoformat() for each in items)
    return None


def hold(node: exp.In, values: LiteralList) -> None:
    """Make ``values`` the list of ``node``."""
    node.set("expressions", [exp.Var(this=values.written())])
    node.set("literals", values)
    column: exp.Expr = node
    while column.parent is not None and not isinstance(column.parent, exp.Select | exp.Subquery):
        column = column.parent
    if column.arg_key == "expressions" and not isinstance(column, exp.Alias):
        # The engine would name the column of the result after the whole list.
        name = exp.to_identifier(shown(column), quoted=True)
        alias = exp.Alias(alias=name)
        alias.meta["is_ours"] = True
        column.replace(alias)
        alias.set("this", column)


def held(node: exp.Expr) -> LiteralList | None:
    """The list that ``node`` was given by ``hold``, None for every other node."""
    found = node.args.get("literals") if isinstance(node, exp.In) else None
    return found if isinstance(found, LiteralList) else None


def spread(tree: exp.Expr) -> None:
    """Make nodes of the lists of ``tree``, for an engine that reads nothing else."""
    for node in list(tree.find_all(exp.In)):
        values = held(node)
        if values is not None:
            node.set("literals", None)
            node.set("expressions", list(values.nodes()))


def shown(node: exp.Expr) -> str:
    """The SQL of ``node`` in DuckDB's spelling, its long lists shortened."""
    if any(held(each) is not None for each in node.find_all(exp.In)):
        node = node.copy()
        for each in node.find_all(exp.In):
            values = held(each)
            if values is not None:
                each.set("expressions", [exp.Var(this=values.shown)])
    return node.sql(dialect="duckdb")
