"""CAST between Spark's types in ANSI mode, as DuckDB expressions.

Fractions are truncated, never rounded; values out of range and invalid texts raise an error;
``TRY_CAST`` returns NULL for them. ``grammar/spark_casts.txt`` has the expressions.
"""

from __future__ import annotations

import re
from typing import Final

from sqlglot import exp

from icesql.query.dialects import types as t
from icesql.query.dialects.spark.instants import first_instant
from icesql.query.dialects.templates import duckdb
from icesql.query.dialects.types import SqlType
from icesql.sql.grammar import columns

# Characters that Spark trims at both ends of a text.
_BLANK: Final = r"[\x00-\x20\x7F]+"
_BLANKS: Final = "".join(map(chr, (*range(0x21), 0x7F)))
_TRIMMED: Final = f"regexp_replace($1, '^{_BLANK}|{_BLANK}$', '', 'g')"
# A T before a time of day is valid only at the very start.
_TRIMMED_TIMESTAMP: Final = rf"regexp_replace($1, '(?s)^{_BLANK}([^T]|$)|{_BLANK}$', '\1', 'g')"


_TABLE: Final = "spark_casts.txt"


def _rows(section: str, kind: str, wanted: str, word: str) -> list[list[str]]:
    """The columns behind the first of the rows for a kind of type, with their names replaced."""
    names = {**dict(columns(_TABLE, "names")), "TYPE": wanted, "CAST": word}

    def spelled(text: str) -> str:
        return re.sub(r"\$([A-Z]+)", lambda found: spelled(names[found[1]]), text)

    return [
        [spelled(each) for each in row]
        for kinds, *row in columns(_TABLE, section)
        if kind in kinds.split("|")
    ]


def cast(node: exp.Expr, given: SqlType, to: SqlType, *, safe: bool = False) -> exp.Expr | None:
    """``node`` cast as Spark casts it; None if Spark or this module does not support the cast.

    ``safe`` is TRY_CAST.
    """
    wanted = t.duckdb_name(to)
    if given == to:
        return node
    if wanted is None:
        return None
    if given.kind == "null":
        return _plain(node, wanted)
    word = "TRY_CAST" if safe else "CAST"
    kind = "long decimal" if given.kind == "decimal" and given.precision > 15 else given.kind
    for kinds, text in _rows("values", kind, wanted, word):
        if to.kind in kinds.split("|"):
            return duckdb(text, node)
    if given.kind == "string":
        return _of_text(node, to, wanted, safe)
    if given.kind == "array" and to.kind == "array":
        return _of_array(node, given, to, safe)
    if given.kind == to.kind and to.kind in ("struct", "map") and t.common(given, to) == to:
        return duckdb(f"{word}($1 AS {wanted})", node)
    return None


def _plain(node: exp.Expr, wanted: str) -> exp.Expr:
    return exp.Cast(this=node, to=exp.DataType.build(wanted, dialect="duckdb"))


def _of_text(node: exp.Expr, to: SqlType, wanted: str, safe: bool) -> exp.Expr | None:
    bare = node.this if isinstance(node, exp.Paren) else node
    constants = dict(columns(_TABLE, "constants"))
    if isinstance(bare, exp.Literal) and not safe and to.kind in constants:
        if to.kind == "timestamp" and re.fullmatch(constants["timestamp_ntz"], bare.name):
            return first_instant(bare)
        if re.fullmatch(constants[to.kind], bare.name):
            return _plain(bare, wanted)
    read = forms(to, wanted, "TRY_CAST" if safe else "CAST")
    if not read:
        return None
    cases = " ".join(f"WHEN regexp_full_match($1, '{form}') THEN {value}" for form, value in read)
    failed = "NULL" if safe else f"error('the text ''' || $1 || ''' is no {to}')"
    made = f"CASE WHEN $1 IS NULL THEN NULL {cases} ELSE $failed END".replace("$failed", failed)
    if isinstance(bare, exp.Literal):
        text = bare.name.strip(_BLANKS)
        if to.kind == "timestamp" and text.startswith("T"):
            text = bare.name.rstrip(_BLANKS)
        return duckdb(made, text)
    made = made.replace("$1", "own_text")
    trimmed = _TRIMMED_TIMESTAMP if to.kind == "timestamp" else _TRIMMED
    return duckdb(f"list_transform([{trimmed}], lambda own_text: {made})[1]", node)


def forms(to: SqlType, wanted: str, word: str) -> list[list[str]]:
    """Regular expressions of the trimmed texts that Spark reads as ``to``, and the value of each.

    ``wanted`` is DuckDB's name of the type, ``word`` CAST or TRY_CAST. Forms that cannot be
    computed here have the value ``error(…)``, also with TRY_CAST.
    """
    return _rows("texts", to.kind, wanted, word)


def _of_array(node: exp.Expr, given: SqlType, to: SqlType, safe: bool) -> exp.Expr | None:
    element = exp.to_identifier("own_element")
    made = cast(element, given.element, to.element, safe=safe)
    if made is None:
        return None
    if made is element:
        return node
    return duckdb("list_transform($1, lambda own_element: $2)", node, made)
