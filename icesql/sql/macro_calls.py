"""Replace each call of a macro in a statement by the macro's body.

The resulting text is read as if the user had written it, so a macro can do nothing that its text
could not do in its place. An argument keeps the meaning that it has where it is written: an
argument whose names would be resolved against the tables of the macro's own query is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace
from sqlglot import exp

from icesql.errors import Error, ProgrammingError
from icesql.frozen import Frozen
from icesql.quoting import quoted
from icesql.sql.edited_text import Segment, Sources, edited, is_named, joined
from icesql.sql.keywords import word_set
from icesql.sql.lexer import (
    CLOSING,
    OPENING,
    Span,
    Token,
    Tokens,
    before,
    closing,
    outer,
    span_of,
    tokenize,
    word_at,
)
from icesql.sql.macro import Body, Macro, Macros, bodies_of, ends_operand
from icesql.sql.parser.depth import select_columns
from icesql.sql.positions import syntax_error, unsupported

_DEEPEST: Final = 64
_LONGEST: Final = 2_000_000
_FROM: Final = ("FROM", "JOIN", "LATERAL")
_CLAUSES: Final = word_set("SELECT WHERE GROUP HAVING ORDER QUALIFY LIMIT VALUES WITH WINDOW")
_NO_ALIAS: Final = word_set("QUALIFY POSITIONAL ASOF SEMI ANTI SAMPLE TABLESAMPLE WINDOW")
_OPERATORS: Final = (exp.Binary, exp.Between, exp.In, exp.Not)
_NO_OPERATORS: Final = (exp.Dot, exp.PropertyEQ, exp.Kwarg, exp.JSONExtract)
_SCHEMAS: Final = ("temp", "main")
_NAMED: Final = (":=", "=>")

if TYPE_CHECKING:
    from icesql.sql.parse import Parse


class _Call(Frozen):
    """A call, by token indexes: its first and last, and the first and last of each argument."""

    macro: Macro
    first: int
    last: int
    arguments: tuple[Span, ...]


class _Part(Frozen):
    """Tokens of a text and the index of its source.

    ``given`` are the values of parameters, by the parameters' offsets; ``above`` the macros whose
    bodies contain it.
    """

    sql: str
    tokens: Tokens
    source: int = -1
    given: Mapping[int, Sequence[Segment]] = {}
    above: tuple[str, ...] = ()


def expand(
    sql: str,
    tokens: Tokens,
    macros: Macros,
    parse: Parse,
    before: str = "",
) -> tuple[str, Sources] | None:
    """Return a statement's text after macro expansion, and its sources; None without calls.

    ``before`` are words in front of the tokens.
    Raises ProgrammingError for recursive macros, SqlSyntaxError for arguments that a macro does not
    take, UnsupportedSqlError for arguments whose meaning would change.
    """
    work = _Expansion(macros, parse)
    segments = work.expanded(_Part(sql, tokens))
    if not work.texts:
        return None
    return joined([Segment(before, -1, tokens[0].start), *segments], work.texts, "macro")


class _Expansion:
    def __init__(self, macros: Macros, parse: Parse) -> None:
        self._macros, self._parse = macros, parse
        self.texts: list[tuple[str, str]] = []
        self._at = 0

    def expanded(self, text: _Part) -> list[Segment]:
        """Return the segments of a text without calls and parameters."""
        sql, tokens, source, given = text.sql, text.tokens, text.source, text.given
        edits: list[tuple[int, int, Sequence[Segment]]] = []
        calls: list[Span] = []
        index = 0
        while index < len(tokens):
            token = tokens[index]
            call = None if token.start in given else _call_at(tokens, index, self._macros)
            if token.start in given:
                edits.append((token.start, token.stop, given[token.start]))
            elif call is not None:
                if source < 0 and not text.above:
                    self._at = token.start
                end = tokens[call.last].stop
                edits.append((token.start, end, self._called(call, text)))
                calls.append((token.start, end))
                index = call.last
            index += 1
        edits += [
            (end, end, [Segment(f" AS {quoted(name)}", source, end)])
            for end, name in self._names(sql, tokens, calls)
        ]
        begin, stop = span_of(tokens) if tokens else (0, 0)
        made = edited(sql[begin:stop], begin, edits, source)
        if sum(len(each.words) for each in made) > _LONGEST:
            raise ProgrammingError(
                f"the macros of this statement make over {_LONGEST:,} characters of SQL"
            )
        return made

    def _called(self, call: _Call, text: _Part) -> list[Segment]:
        tokens, above = text.tokens, text.above
        macro, name = call.macro, call.macro.name.lower()
        if name in above:
            chain = " → ".join([*above[above.index(name) :], name])
            raise ProgrammingError(f'the macro "{macro.name}" calls itself: {chain}')
        if len(above) >= _DEEPEST:
            raise ProgrammingError(f'macros are nested more than {_DEEPEST} deep at "{macro.name}"')
        by_place, by_name = self._arguments(call, text)
        body = next(bodies_of(macro, len(by_place), set(by_name)), None)
        if body is None:
            problem = f"the macro takes other arguments: {macro.signatures}"
            raise syntax_error(problem, self._at)
        values = dict(by_name)
        for parameter, segments in zip(body.parameters, by_place, strict=False):
            values[parameter.name] = segments
        for segments in values.values():
            self._check_names(body, segments)
        number = len(self.texts)
        self.texts.append((macro.name, body.text))
        replacements: dict[str, list[Segment]] = {}
        for parameter in body.parameters:
            segments = values.get(parameter.name, [Segment(parameter.default, number, 0)])
            replacements[parameter.name] = _bracketed(segments, parameter.type, number)
        given = {start: replacements[parameter] for start, _, parameter in body.places}
        words = tokenize(body.text, self._parse.reader)
        inner = self.expanded(_Part(body.text, words, number, given, (*above, name)))
        after = tokens[call.last + 1] if call.last + 1 < len(tokens) else None
        if macro.is_table:
            alias = "" if _begins_alias(after) else f" AS {quoted(macro.name)}"
            return [Segment("(", number, 0), *inner, Segment(f"\n){alias}", number, 0)]
        if after is not None and after.word == "OVER":
            if not body.is_call:
                hint = f"{macro.name}() is no call of a function"
                raise unsupported("OVER after this macro", self._at, hint)
            return inner
        if _is_number(inner) and _is_key(tokens, call.first):
            # Otherwise ORDER BY 1 would sort by the first column.
            inner = [*inner, Segment(" + 0", number, 0)]
        return _bracketed(inner, body.type, number)

    def _arguments(
        self, call: _Call, text: _Part
    ) -> tuple[list[list[Segment]], dict[str, list[Segment]]]:
        """Return the positional arguments and the named arguments."""
        by_place: list[list[Segment]] = []
        by_name: dict[str, list[Segment]] = {}
        for first, last in call.arguments:
            part = text.tokens[first : last + 1]
            name = ""
            if len(part) > 2 and part[0].is_name and part[1].text in _NAMED:
                name, part = part[0].text.lower(), part[2:]
            if part[0].word in ("DISTINCT", "*"):
                what = f"{part[0].text} in the arguments of a macro"
                raise unsupported(what, self._at, "it takes expressions")
            if any(each.word == "?" for each in part):
                raise unsupported("a ? in the arguments of a macro", self._at, "write $1, $2")
            segments = self.expanded(replace(text, tokens=part))
            if name in by_name or (by_name and not name):
                problem = f"the macro takes other arguments: {call.macro.signatures}"
                raise syntax_error(problem, self._at)
            if name:
                by_name[name] = segments
            else:
                by_place.append(segments)
        return by_place, by_name

    def _check_names(self, body: Body, segments: Sequence[Segment]) -> None:
        """Refuse an argument whose names would have another meaning inside the body."""
        if body.tables is None and not body.lambdas:
            return
        text = "".join(each.words for each in segments)
        tokens = tokenize(f"SELECT {text}", self._parse.reader)
        if not any(each.is_name for each in tokens):
            return
        tree = self._parse.tree_of(f"SELECT {text}", tokens)
        for column in tree.find_all(exp.Column):
            names = [part.name.lower() for part in column.parts]
            if names[0] in body.lambdas:
                hint = "a lambda function of the macro has a parameter of this name"
                raise unsupported(f"the name {names[0]} in its arguments", self._at, hint)
            if body.tables is None:
                continue
            if len(names) == 1:
                hint = f"write its table in front of it: t.{column.name}"
                what = f"the column {column.name} in the arguments of a macro with a query"
                raise unsupported(what, self._at, hint)
            if set(names[:-1]) & body.tables:
                hint = "the macro has a table of this name; give yours another alias"
                raise unsupported(f"{'.'.join(names)} in the arguments", self._at, hint)

    def _names(self, sql: str, tokens: Tokens, calls: Sequence[Span]) -> list[tuple[int, str]]:
        """Return the ends of columns that a call would rename, and their names with the call."""
        found: list[tuple[int, str]] = []
        for start, end, _ in select_columns(tokens) if calls else ():
            if not any(start <= first and last <= end for first, last in calls):
                continue
            inside = [each for each in tokens if start <= each.start < end]
            select = word_at("SELECT", start)
            try:
                tree = self._parse.tree_of(sql, [select, *inside])
            except Error:
                continue  # the error is raised when the whole text is parsed
            columns = tree.expressions if isinstance(tree, exp.Select) else []
            if len(columns) == 1 and not is_named(columns[0]):
                found.append((end, _name(columns[0], sql[start:end])))
        return found


def _name(node: exp.Expr, words: str) -> str:
    """Return DuckDB's name for a column, with parentheses around each operator and nowhere else."""
    root = exp.Paren(this=node.copy())
    for each in reversed(list(root.this.walk())):
        if isinstance(each, exp.Paren):
            each.replace(each.this)
        elif isinstance(each, _OPERATORS) and not isinstance(each, _NO_OPERATORS):
            place = exp.Placeholder()
            each.replace(place)
            place.replace(exp.Paren(this=each))
    try:
        return str(root.this.sql(dialect="duckdb", normalize_functions="lower"))
    except ValueError:
        return words


def _bracketed(segments: Sequence[Segment], kind: str, source: int) -> list[Segment]:
    """Put the segments in parentheses, or cast them to a type."""
    first, last = ("CAST((", f") AS {kind})") if kind else ("(", ")")
    return [Segment(first, source, 0), *segments, Segment(last, source, 0)]


def _is_number(segments: Sequence[Segment]) -> bool:
    return "".join(each.words for each in segments).strip("() \n+-").isdigit()


def _is_key(tokens: Tokens, index: int) -> bool:
    """True if the expression at a token may be a whole item of ORDER BY or GROUP BY."""
    depth = 0
    for each in range(index - 1, -1, -1):
        kind = tokens[each].word
        depth += (kind in CLOSING) - (kind in OPENING)
        if kind in ("ORDER", "GROUP"):
            return True
        if depth == 0 and kind in (*_CLAUSES, *_FROM):
            return False
    return False


def _call_at(tokens: Tokens, index: int, macros: Macros) -> _Call | None:
    """Return the call of a macro that begins at a token; None if there is none."""
    first = index
    dotted = [each.word for each in tokens[index + 1 : index + 2]] == ["."]
    if dotted and tokens[index].text.lower() in _SCHEMAS:
        index += 2
    if index + 1 >= len(tokens) or not tokens[index].is_name:
        return None
    macro = macros.get(tokens[index].text.lower())
    if macro is None or tokens[index + 1].word != "(":
        return None
    if first and ends_operand(tokens[first - 1]):
        return None
    arguments, last = _split(tokens, index + 1)
    following = [each.word for each in tokens[last + 1 : last + 3]]
    if following[:1] == ["AS"] and following[1:] in (["("], ["MATERIALIZED"], ["NOT"]):
        return None  # a CTE with names for its columns
    if macro.is_table != _is_in_from(tokens, first):
        return None
    return _Call(macro, first, last, arguments)


def _split(tokens: Tokens, opened: int) -> tuple[tuple[Span, ...], int]:
    """Return the first and last token of each argument, and the closing parenthesis."""
    found: list[Span] = []
    first, last = opened + 1, closing(tokens, opened)
    if last == len(tokens):
        raise syntax_error("the arguments do not end", tokens[opened], (")",))
    while first <= last and (found or first < last):
        stop = outer(tokens, first, (",",))
        if stop == first:
            raise syntax_error("an argument is missing", tokens[stop], ("an expression",))
        found.append((first, stop - 1))
        first = stop + 1
    return tuple(found), last


def _is_in_from(tokens: Tokens, index: int) -> bool:
    """True if the token is at a place for tables in FROM."""
    word = tokens[index - 1].word if index else ""
    if word != ",":
        return word in _FROM
    place = before(tokens, index - 1, (*_FROM[:2], *_CLAUSES))
    return place >= 0 and tokens[place].word in _FROM


def _begins_alias(token: Token | None) -> bool:
    return token is not None and (
        token.word == "AS" or (token.is_name and token.word not in _NO_ALIAS)
    )
