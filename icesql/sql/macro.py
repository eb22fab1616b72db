"""A macro: expressions or a query with a name and parameters, and the statements that make one.

CREATE [OR REPLACE] [TEMP] MACRO [IF NOT EXISTS] f(a, b := 1) AS a + b
CREATE MACRO newest(n) AS TABLE SELECT * FROM t ORDER BY ts DESC LIMIT n
CREATE [OR REPLACE] TEMPORARY FUNCTION f(a INT) RETURNS INT RETURN a + 1
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from icesql.errors import ProgrammingError, nearest
from icesql.frozen import Frozen
from icesql.sql.cursor import TokenCursor
from icesql.sql.lexer import CLOSING, NUMBER, TEXT, Token, Tokens, word_at
from icesql.sql.positions import syntax_error, unsupported
from icesql.sql.statement import MacroStatement
from icesql.sql.trees import exp, parts_of

if TYPE_CHECKING:
    from icesql.sql.parse import Parse


Macros = dict[str, "Macro"]
WORDS: Final = ("MACRO", "FUNCTION")
TEMPORARY: Final = ("TEMP", "TEMPORARY")
_MACRO: Final = r"(CREATE( OR REPLACE)?|DROP)( TEMP| TEMPORARY)? (MACRO|FUNCTION)\b"


class Parameter(Frozen):
    """A parameter; ``default`` and ``type`` are SQL, "" for none. The name is in lower case."""

    name: str
    default: str = ""
    type: str = ""


class Body(Frozen):
    """The body of a macro for calls with these parameters.

    ``text`` is the SQL. ``places`` are its uses of parameters: offset of the first character, of
    the last character, and name. ``tables`` are the names and aliases of its tables, None without
    tables; ``lambdas`` the parameters of its lambda functions, in lower case. ``type`` is the SQL
    of the type that its value is cast to, "" for none. ``is_call``: the body is a single call.
    """

    parameters: tuple[Parameter, ...]
    text: str
    places: tuple[tuple[int, int, str], ...] = ()
    tables: frozenset[str] | None = None
    lambdas: frozenset[str] = frozenset()
    type: str = ""
    is_call: bool = False


class Macro(Frozen):
    """A macro with its name; ``is_table``: a table macro, called in FROM. Its bodies take
    different numbers of arguments."""

    name: str
    bodies: tuple[Body, ...]
    is_table: bool = False

    @property
    def signatures(self) -> str:
        """The forms in which it is called."""
        return ", ".join(
            f"{self.name}({', '.join(each.name for each in body.parameters)})"
            for body in self.bodies
        )


# A time before that of the statement, as in DuckDB.
AGO: Final = Macro(
    "ago", (Body((Parameter("span"),), "now() - CAST(span AS INTERVAL)", ((13, 16, "span"),)),)
)


class CreateMacro(MacroStatement):
    """CREATE [OR REPLACE] [TEMP] MACRO [IF NOT EXISTS] name(parameters) AS expression."""

    macro: Macro
    replace: bool = False
    if_missing: bool = False


class DropMacro(MacroStatement):
    """DROP MACRO [TABLE] or FUNCTION [IF EXISTS] name; ``is_table`` None drops either kind."""

    name: str
    if_exists: bool = False
    is_table: bool | None = None


def is_macro_word(tokens: Tokens) -> bool:
    """True if a CREATE or DROP statement is about a macro."""
    return re.match(_MACRO, " ".join(each.word for each in tokens[:5])) is not None


def changed(macros: Macros, statement: MacroStatement) -> Macros:
    """Return the macros after a statement. Raises ProgrammingError for a taken or missing name."""
    if isinstance(statement, CreateMacro):
        made = statement.macro
        if made.name.lower() in macros and not statement.replace:
            if statement.if_missing:
                return macros
            hint = "CREATE OR REPLACE MACRO replaces it"
            raise ProgrammingError(f'the macro "{made.name}" exists; {hint}')
        return {**macros, made.name.lower(): made}
    assert isinstance(statement, DropMacro)
    found = macros.get(statement.name.lower())
    if found is None or statement.is_table not in (None, found.is_table):
        if statement.if_exists:
            return macros
        known = [each.name for each in macros.values()]
        hint = nearest(statement.name, known) if found is None else ""
        kind = "table macro" if statement.is_table else "macro"
        raise ProgrammingError(f'no {kind} "{statement.name}"{hint}')
    return {name: each for name, each in macros.items() if each is not found}


def bodies_of(macro: Macro, count: int, names: set[str]) -> Iterator[Body]:
    """Yield the bodies that accept ``count`` positional arguments and these named arguments."""
    for body in macro.bodies:
        rest = body.parameters[count:]
        known = {each.name for each in rest}
        if (
            count <= len(body.parameters)
            and names <= known
            and all(each.name in names or each.default for each in rest)
        ):
            yield body


def ends_operand(token: Token, *signs: str) -> bool:
    """True if no expression starts after a token: t.a, x AS a, a b; ``signs`` are further ones."""
    return (
        token.is_name or token.kind in (TEXT, NUMBER) or token.word in ("AS", ".", *CLOSING, *signs)
    )


# ------------------------------------------------------------------ CREATE and DROP
# Parameters are found in the tokens and again in the tree of the body. If the two differ (a name
# is used as a parameter and as an alias) the macro is refused, so that no parameter is missed.


_NO_VALUE: Final = ("?", "$")
_CHOOSE: Final = "choose another name for the parameter"


def read_macro(tokens: Tokens, parse: Parse) -> MacroStatement:
    """Read the statement of tokens that ``is_macro_word`` accepts.

    Raises SqlSyntaxError, UnsupportedSqlError, and the errors of reading its body.
    """
    made = _Reader(tokens, parse.sql, parse)
    return made.drop() if made.either("DROP") else made.create()


class _Reader(TokenCursor):
    def create(self) -> CreateMacro:
        self.need("CREATE")
        replaced = self.skip("OR REPLACE")
        self.either(*TEMPORARY)
        self.either(*WORDS)
        if_missing = self.skip("IF")
        if if_missing:
            self.need("NOT EXISTS")
        if replaced and if_missing:
            raise unsupported("OR REPLACE with IF NOT EXISTS", self.here, "write one of them")
        name = self._name()
        bodies, is_table = [self._body(name)], self._is_table
        while self.token is not None:
            if is_table or not self.skip(","):
                raise self.unexpected("the end of the statement")
            bodies.append(self._body(name))
            if self._is_table:
                raise unsupported("a macro with an expression and a query", self.here)
        counts = [len(each.parameters) for each in bodies]
        if len(set(counts)) < len(counts):
            hint = "its bodies differ by how many they have"
            raise unsupported("two bodies with the same number of parameters", self.here, hint)
        return CreateMacro(Macro(name, tuple(bodies), is_table), replaced, if_missing)

    def drop(self) -> DropMacro:
        self.either(*TEMPORARY)
        self.either(*WORDS)
        is_table = self.skip("TABLE") or None
        if_exists = self.skip("IF")
        if if_exists:
            self.need("EXISTS")
        name = self._name()
        self.either("CASCADE", "RESTRICT")
        self.end()
        return DropMacro(name, if_exists, is_table)

    # ------------------------------------------------------------ pieces

    def _name(self) -> str:
        """Read ``f``, ``temp.f`` or ``main.f``."""
        name = self._identifier("a name")
        if self.skip("."):
            if name.lower() not in ("temp", "main"):
                hint = f"a macro has one name, as in CREATE MACRO {self._identifier('a name')}(x)"
                raise unsupported(f"a macro in {name}", self.here, hint)
            name = self._identifier("a name")
        return name

    def _identifier(self, expected: str) -> str:
        if self.token is None or not self.token.is_name:
            raise self.unexpected(expected)
        return self.identifier(expected)

    def _body(self, name: str) -> Body:
        """Read ``(a, b := 1) AS [TABLE] body`` or ``(a INT) RETURNS INT RETURN body``."""
        at = self.here
        parameters = self._parameters()
        kind = ""
        if self.skip("RETURNS"):
            first = self.index
            while self.token is not None and self.peek() not in ("RETURN", "AS"):
                self.index += 1
            kind = self.written(first, self.index)
        if not self.skip("RETURN"):
            if kind or any(each.type for each in parameters):
                hint = "write RETURNS type RETURN expression, or CAST(x AS type) in a macro"
                raise unsupported("types of a macro", at, hint)
            self.need("AS")
        self._is_table = self.skip("TABLE") or kind.upper().startswith("TABLE")
        first = self.index
        body = self.rest if self._is_table else self.until()
        if not body:
            raise syntax_error("the macro has no body", self.here, ("an expression",))
        self.index = first + len(body)
        return self._analysed(name, parameters, body, "" if self._is_table else kind)

    def _parameters(self) -> tuple[Parameter, ...]:
        self.need("(")
        found: list[Parameter] = []
        while not self.skip(")"):
            if found and not self.skip(","):
                raise self.unexpected(",", ")")
            at, name = self.here, self._identifier("a parameter").lower()
            kind = self._until((":=", "=>", "=", "DEFAULT"))
            default = ""
            if self.either(":=", "=>", "=", "DEFAULT"):
                default = self._until(())
                if not default:
                    raise self.unexpected("a constant")
            elif found and found[-1].default:
                raise syntax_error(f"the parameter {name} has no default", at, (":=",))
            if any(each.name == name for each in found):
                raise syntax_error(f"two parameters are called {name}", at)
            found.append(Parameter(name, default, kind))
        return tuple(found)

    def _until(self, words: tuple[str, ...]) -> str:
        """Return the SQL up to one of the words, a comma or the closing parenthesis."""
        first = self.index
        self.until(*words)
        return self.written(first, self.index)

    def _analysed(
        self, name: str, parameters: tuple[Parameter, ...], tokens: Tokens, kind: str
    ) -> Body:
        """Read the body in these tokens. Raises UnsupportedSqlError for an ambiguous parameter."""
        for token in tokens:
            if token.word in _NO_VALUE:
                raise unsupported("a parameter of the statement in a macro", token, "name it")
        start = tokens[0].start
        select = word_at("SELECT", start)
        query = tokens if self._is_table else [select, *tokens]
        tree = self.parse.tree_of(self.sql, query)
        if not self._is_table and not _is_expression(tree):
            hint = "a query is written AS TABLE SELECT …, or in parentheses"
            raise unsupported("this body of a macro", tokens[0], hint)
        names = [each.name for each in parameters]
        places = _places(tokens, set(names))
        lambdas = _lambda_names(tree)
        aliases = _table_names(tree)
        used = Counter(token.text.lower() for token in places)
        columns = Counter(each.parts[0].name.lower() for each in tree.find_all(exp.Column))
        for each in names:
            if each in lambdas or each in aliases or used[each] != columns[each]:
                raise unsupported(f"the name {each} for two things in a macro", start, _CHOOSE)
        has_query = self._is_table or tree.find(exp.Table, exp.Subquery) is not None
        if not has_query:
            _check_columns(tree, {*names, *lambdas})
        self.parse.check_macro(tokens, name, "" if self._is_table else "SELECT ")
        inner = tree.expressions[0] if not self._is_table else tree
        return Body(
            parameters,
            self.sql[start : tokens[-1].stop],
            tuple((t.start - start, t.stop - 1 - start, t.text.lower()) for t in places),
            aliases if has_query else None,
            lambdas,
            kind,
            isinstance(inner, exp.Func) and not kind,
        )


def _is_expression(tree: exp.Expr) -> bool:
    if not isinstance(tree, exp.Select) or len(tree.expressions) != 1:
        return False
    if parts_of(tree) != {"expressions"}:
        return False
    return not isinstance(tree.expressions[0], exp.Alias | exp.Star)


def _check_columns(tree: exp.Expr, known: set[str]) -> None:
    """Refuse a column without a table: the caller's context would decide its meaning."""
    for column in tree.find_all(exp.Column):
        if column.parts[0].name.lower() not in known and not isinstance(column.this, exp.Star):
            what = f"the column {column.name} in a macro without a table"
            raise unsupported(what, column, "give the macro a parameter for it")


def _places(tokens: Tokens, names: set[str]) -> list[Token]:
    """Return the tokens that are parameters used as an expression."""
    found = []
    for index, token in enumerate(tokens):
        if not token.is_name or token.text.lower() not in names:
            continue
        if index and ends_operand(tokens[index - 1], "::"):
            continue
        after = tokens[index + 1].text if index + 1 < len(tokens) else ""
        if after in ("(", ":=", "=>"):
            continue
        if after == ":" and index and tokens[index - 1].text in ("{", ","):
            continue
        found.append(token)
    return found


def _lambda_names(tree: exp.Expr) -> frozenset[str]:
    found = [part.name for each in tree.find_all(exp.Lambda) for part in each.expressions]
    for each in tree.find_all(exp.Comprehension):
        part = each.expression
        found.append(part.name if isinstance(part, exp.Expression) else str(part))
    return frozenset(each.lower() for each in found)


def _table_names(tree: exp.Expr) -> frozenset[str]:
    """Return the names of tables, their aliases, and the column names of these aliases."""
    found: list[str] = []
    for table in tree.find_all(exp.Table):
        found += [part.name for part in table.parts]
    for alias in tree.find_all(exp.TableAlias):
        found += [alias.name, *(column.name for column in alias.args.get("columns") or ())]
    return frozenset(each.lower() for each in found if each)
