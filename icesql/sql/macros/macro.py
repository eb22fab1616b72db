"""A macro: expressions or a query with a name and parameters; and the macros of a session."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from icesql.errors import ProgrammingError, nearest
from icesql.frozen import Frozen
from icesql.sql.lexer import CLOSING, NUMBER, TEXT, Token, Tokens
from icesql.sql.statement import MacroStatement

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
