"""LIKE and regular expressions; patterns that RE2 and Java read differently are refused."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from icesql.query.dialects import types as t
from icesql.query.dialects.spark.calls import DIALECT, Typed, converted
from icesql.query.dialects.templates import duckdb
from icesql.sql.positions import unsupported

if TYPE_CHECKING:
    from icesql.query.dialects.spark.expressions import Expressions

# Syntax that Java and RE2 read differently: look-around, references, possessive and atomic groups,
# nested character classes, quotes, anchors and boundaries, Unicode scripts, named groups.
_JAVA_ONLY: Final = re.compile(
    r"\(\?(?![:imsU-]|P<)|\\[1-9kQEGRXZzbBhHvVNuxec0pP]|[*+?}]\+|\[[^\]]*(\[|&&)"
)
_MODES: Final = re.compile(r"\(\?[a-zA-Z-]*[^imsa-zA-Z:)-]")


def like(self: Expressions, node: exp.Expr) -> Typed:
    """Translate LIKE and ILIKE, also with ESCAPE, ANY and ALL."""
    escape = "\\"
    whole = node
    if isinstance(node, exp.Escape):
        if not isinstance(node.expression, exp.Literal) or len(node.expression.name) != 1:
            raise unsupported(f"an ESCAPE that is not one character in {DIALECT}", node)
        escape, node = node.expression.name, node.this
    if not isinstance(node, exp.Like | exp.ILike):
        raise unsupported(f"ESCAPE here in {DIALECT}", whole)
    value = self.of(node.this)
    subject = converted(value, t.STRING, node)
    word = "ILIKE" if isinstance(node, exp.ILike) else "LIKE"
    pattern, negated = node.expression, bool(node.args.get("negate"))
    if not isinstance(pattern, exp.Any | exp.All):
        made = _one(self, subject, pattern, word, escape)
        return Typed(exp.Not(this=made) if negated else made, t.BOOLEAN)
    inner = pattern.this
    listed = inner.expressions if isinstance(inner, exp.Tuple) else [inner.unnest()]
    if not listed or isinstance(listed[0], exp.Query):
        raise unsupported(f"{word} ANY or ALL without a list in {DIALECT}", node)
    parts = [_one(self, subject.copy(), each, word, escape) for each in listed]
    if negated:
        parts = [exp.Not(this=each) for each in parts]
    join = exp.or_ if isinstance(pattern, exp.Any) else exp.and_
    return Typed(exp.Paren(this=join(*parts, copy=False)), t.BOOLEAN)


def _one(
    self: Expressions, subject: exp.Expr, pattern: exp.Expr, word: str, escape: str
) -> exp.Expr:
    text = pattern.name if pattern.is_string else None
    own = re.escape(escape)
    # In Spark an escape before any other character raises an error.
    regular = f"(?s)([^{own}]|{own}[_%{own}])*"
    if text is not None and not re.fullmatch(regular, text):
        raise unsupported(f"a LIKE pattern with a stray {escape} in {DIALECT}", pattern)
    found = converted(self.of(pattern), t.STRING, pattern)
    if text is not None and escape not in text:
        return duckdb(f"$1 {word} $2", subject, found, exact=False)
    quoted = escape.replace("'", "''")
    made = duckdb(f"$1 {word} $2 ESCAPE '{quoted}'", subject, found)
    if text is not None:
        return made
    return duckdb(
        "CASE WHEN NOT regexp_full_match($1, $2) "
        "THEN error('a LIKE pattern with a stray escape') ELSE $3 END",
        found.copy(),
        regular,
        made,
    )


def java_pattern(value: Typed, at: exp.Expr) -> str:
    """A regular expression with one meaning in both. Raises UnsupportedSqlError at ``at``."""
    if not value.node.is_string:
        raise unsupported(f"a regular expression that is not a constant text in {DIALECT}", at)
    text = value.node.name
    if _JAVA_ONLY.search(text) or _MODES.search(text):
        raise unsupported(
            f"the regular expression '{text}' in {DIALECT}", at, "RE2 has no such part"
        )
    # In Java "$" also matches before a final line break.
    return text
