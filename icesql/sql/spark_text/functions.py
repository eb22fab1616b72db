"""Which of Spark's functions a query in Spark's own text may call, by the name that Spark resolves.

Everything that looks like a call in the final text is looked up here. So no dialect, quote or
rewriting can produce a call that the user was not allowed to write.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator
from typing import Final

from icesql.errors import nearest
from icesql.sql.function_table import SPARK
from icesql.sql.grammar import words_by_head
from icesql.sql.keywords import word_set
from icesql.sql.lexer import NAME, WORD, Token, Tokens
from icesql.sql.positions import unsupported
from icesql.sql.trees import exp

_ALLOWED: Final = word_set("safe volatile word")
_REASONS: Final = {
    "leaks": "it shows what is inside Spark or this machine, not what is in a table",
    "system": "a query reads its tables and nothing else of the machine",
}
_UNKNOWN: Final = "Spark has no such function, or icesql does not classify it yet"
# Words that Spark evaluates as a call without parentheses, unless a column has the name.
_LEAKS_BARE: Final = word_set("current_user session_user user current_path")


@functools.cache
def classes() -> dict[str, str]:
    """Return the checked-in table: name in lower case → class; its head explains the classes."""
    return {name: kind for kind, name in words_by_head("spark_engine_functions.txt")}


def check_calls(tokens: Tokens, tree: exp.Expr) -> None:
    """Raise UnsupportedSqlError for a call among ``tokens`` that is not allowed in a query.

    ``tree`` is their tree: ``name (a, b)`` may be an alias with names for columns.
    """
    found = list(_calls(tokens))
    counts = Counter(each.text.lower() for each, _ in found)
    for each, qualified in found:
        name = each.text.lower()
        known = classes().get(name)
        if known == "word" and each.kind == NAME:
            known = None
        if known in _ALLOWED and not qualified:
            continue
        if not qualified and counts[name] == _declarations(name, tree):
            continue
        if qualified and known in _ALLOWED:
            raise unsupported(f"a qualified function {name}()", each.start)
        reason = _REASONS.get(known or "", _UNKNOWN)
        if known is None:
            from icesql.sql.remedies import SIMILAR, meaning

            reason = meaning(name, SPARK) or nearest(name, _known_names(), reason, SIMILAR)
        raise unsupported(f"the function {name}()", each.start, reason)


def _calls(found: Tokens) -> Iterator[tuple[Token, bool]]:
    """Yield each name before a parenthesis, and whether another name qualifies it."""
    for at, each in enumerate(found[:-1]):
        if each.kind in (NAME, WORD) and found[at + 1].word == "(":
            yield each, at > 0 and found[at - 1].word == "."


def check_bare_words(tokens: Tokens, columns: frozenset[str]) -> None:
    """Raise UnsupportedSqlError for a bare word that is a call, unless a column has its name."""
    for at, each in enumerate(tokens):
        name = each.text.lower()
        if each.kind == WORD and name in _LEAKS_BARE and name not in columns:
            after_dot = at > 0 and tokens[at - 1].word in (".", "AS")
            if not after_dot:
                raise unsupported(each.text, each.start, _REASONS["leaks"])


@functools.cache
def _known_names() -> tuple[str, ...]:
    return tuple(name for name, each in classes().items() if each in ("safe", "volatile"))


def _declarations(name: str, tree: exp.Expr) -> int:
    """Return how many aliases in the tree have the form ``name (a, b)``."""
    from sqlglot import exp

    return sum(
        each.name.lower() == name and bool(each.args.get("columns"))
        for each in tree.find_all(exp.TableAlias)
    )
