"""Read and write SQL with any release of sqlglot that pyproject.toml allows as the newest does."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ErrorLevel, UnsupportedError
from sqlglot.parser import Parser
from sqlglot.tokens import Token, TokenType

from icesql.sql.positions import unsupported

_LIKES: Final = (TokenType.LIKE, TokenType.ILIKE)
_OF_LISTS: Final = (TokenType.ANY, TokenType.ALL, TokenType.SOME)

Mend = Callable[[Any], Any]


def as_newest(tokens: list[Token], dialect: Dialect) -> tuple[list[Token], Mend]:
    """Return the tokens to parse, and a function to apply to each tree parsed from them.

    Raises UnsupportedSqlError for SQL that only a newer release parses correctly.
    """
    mend: Mend = _as_it_is
    if any(token.token_type in _OF_LISTS for token in tokens):
        tokens = _not_like(tokens)
    if TokenType.MOD not in Parser.FACTOR and has_remainders(tokens):
        tokens, mend = as_products(tokens), remainders
    if any(token.token_type == TokenType.GROUPING_SETS for token in tokens) and has_keys(tokens):
        mend = _both(mend, as_keys)
    kinds = {each.__name__ for each in type(dialect).__mro__}
    # Texts in DuckDB's dialect run unchanged, and DuckDB's tree is compared with sqlglot's.
    is_named = any(token.token_type == TokenType.IS for token in tokens)
    if "DuckDB" not in kinds and is_named and not ranks_is():
        mend = _both(mend, check_is)
    return tokens, mend


def respelt(token: Token, kind: TokenType, text: str) -> Token:
    """Return another token at the place of this one."""
    return Token(kind, text, token.line, token.col, token.start, token.end, token.comments)


def _both(first: Mend, second: Mend) -> Mend:
    return lambda tree: second(first(tree))


def _not_like(tokens: list[Token]) -> list[Token]:
    """Rewrite ``a NOT LIKE ALL (…)`` for older sqlglot, which reads it as NOT (a LIKE ALL (…)).

    It is true if a matches no pattern: NOT (a LIKE ANY (…)). Likewise ``a NOT LIKE ANY (…)`` means
    NOT (a LIKE ALL (…)).
    """
    made = list(tokens)
    for at in range(2, len(made)):
        first, like, word = (each.token_type for each in made[at - 2 : at + 1])
        if first == TokenType.NOT and like in _LIKES and word in _OF_LISTS:
            if _keeps_not(made[at - 1].text):
                continue
            kind = TokenType.ANY if word == TokenType.ALL else TokenType.ALL
            made[at] = respelt(made[at], kind, kind.name)
    return made


def _found(sql: str, *kinds: type[exp.Expr]) -> exp.Expr:
    """Return the first node of a kind that this release reads in a text."""
    (tree,) = Dialect().parse(sql)
    return (tree and tree.find(*kinds)) or exp.Null()


@functools.cache
def _keeps_not(word: str) -> bool:
    """True if trees record NOT in the LIKE or ILIKE node, not in a Not node around it."""
    found = _found(f"SELECT a NOT {word} ALL ('b')", exp.Like, exp.ILike)
    return bool(found.args.get("negate"))


def prepare_to_write(tree: Any) -> None:
    """Change a tree so that its text is the one that the newest release would write."""
    if TokenType.MOD not in Parser.FACTOR:
        in_parentheses(tree)


def _as_it_is(tree: Any) -> Any:
    return tree


# ``a = b IS NULL``: releases of sqlglot disagree on the operand of IS without parentheses.
#
# Newer releases follow each dialect. Older ones read ``a = (b IS NULL)``, and write a text that
# DuckDB reads as ``(a = b) IS NULL``. With an older release such a statement is refused.

_IS: Final = (exp.Is, exp.NullSafeEQ, exp.NullSafeNEQ)
_COMPARISONS: Final = (
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Like, exp.ILike, exp.RegexpLike,
    exp.In, exp.Between, exp.Escape, *_IS,
)  # fmt: skip


@functools.cache
def ranks_is() -> bool:
    """True if this release follows the dialect in choosing the operand of IS."""
    return not isinstance(_found("SELECT a = b IS NULL", exp.Is).parent, exp.EQ)


def check_is(tree: Any) -> Any:
    """Return the tree. Raises UnsupportedSqlError for an IS beside another comparison."""
    for node in tree.find_all(*_IS) if tree is not None else ():
        around = node.parent
        while isinstance(around, exp.Not):
            around = around.parent
        beside = node.this
        while isinstance(beside, exp.Not):
            beside = beside.this
        if isinstance(around, _COMPARISONS) or isinstance(beside, _COMPARISONS):
            hint = "put one of them in parentheses, or install a newer sqlglot"
            raise unsupported("IS beside another comparison", node, hint)
    return tree


# ``GROUP BY a, GROUPING SETS (…)``: sqlglot before 30 drops the comma.
#
# With the comma, ``a`` is part of each set. Without it, as in Spark and Hive, ``a`` names a key
# that the sets use.

_AT_BEGINNING: Final = frozenset({TokenType.GROUP_BY, TokenType.L_PAREN, TokenType.COMMA})


def has_keys(tokens: Sequence[Token]) -> bool:
    """True if GROUPING SETS follow a comma that this release drops.

    Raises UnsupportedSqlError if the statement also has GROUPING SETS without a comma.
    """
    places = [
        at for at, token in enumerate(tokens) if at and token.token_type == TokenType.GROUPING_SETS
    ]
    behind = [at for at in places if tokens[at - 1].token_type == TokenType.COMMA]
    if not behind or _keeps_commas():
        return False
    if any(tokens[at - 1].token_type not in _AT_BEGINNING for at in places):
        hint = "write both with commas, or install a newer sqlglot"
        raise unsupported("GROUPING SETS with and without a comma", tokens[behind[0]].start, hint)
    return True


def as_keys(tree: Any) -> Any:
    """Return the tree with its grouping sets among the other keys of GROUP BY."""
    for group in tree.find_all(exp.Group) if tree is not None else ():
        if group.expressions and group.args.get("grouping_sets"):
            group.set("expressions", [*group.expressions, *group.args["grouping_sets"]])
            group.set("grouping_sets", None)
    return tree


@functools.cache
def _keeps_commas() -> bool:
    group = _found("SELECT 1 FROM t GROUP BY a, GROUPING SETS ((b), (c))", exp.Group)
    return not group.args.get("grouping_sets")


# ------------------------------------------------------------------ escapes in texts
# In string literals of Spark and Snowflake; older sqlglot keeps ``\d``, ``\101``.
#
#     Spark       '\u0041' and '\101' are A, '\d' is d, '\%' and '\_' stay for LIKE
#     Snowflake   '\x41' is A too, '\d' is d, '\_' is _, '' is one quote


_PAIR: Final = r"\\u(?P<high>[dD][89abAB][0-9a-fA-F]{2})\\u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2})"
_HEX: Final = "[0-9a-fA-F]"
_SPARK: Final = re.compile(
    rf"{_PAIR}|\\(?:u(?P<four>{_HEX}{{4}})|U(?P<hex>(?:000{_HEX}|0010){_HEX}{{4}})"
    r"|(?P<octal>[01][0-7]{2})|(?P<other>.))",
    re.DOTALL,
)
_HIVE: Final = re.compile(_SPARK.pattern.replace("U(?P<hex>", "(?!)(?P<hex>"), re.DOTALL)
_SNOWFLAKE: Final = re.compile(
    rf"{_PAIR}|\\(?:u(?P<four>{_HEX}{{4}})|x(?P<hex>{_HEX}{{2}})"
    r"|(?P<octal>[0-3][0-7]{0,2}|[4-7][0-7]?)|(?P<other>.))|''",
    re.DOTALL,
)
_CONTROLS: Final = {"b": "\b", "n": "\n", "r": "\r", "t": "\t"}
_SPARK_ONES: Final = {**_CONTROLS, "0": "\0", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_SNOWFLAKE_ONES: Final = {**_CONTROLS, "f": "\f"}


def with_escapes(tokens: Sequence[Token], sql: str, dialect: Dialect) -> list[Token]:
    """Return the tokens with the escapes in string literals decoded."""
    made = []
    for token in tokens:
        raw = sql[token.start : token.end + 1]
        if token.token_type == TokenType.STRING and "\\" in raw and raw[0] in ("'", '"'):
            token = respelt(token, token.token_type, unescaped(raw[1:-1], dialect))
        made.append(token)
    return made


def unescaped(body: str, dialect: Dialect) -> str:
    """Decode the text between the quotes of a literal in a dialect with backslash escapes."""
    kinds = {each.__name__ for each in type(dialect).__mro__}
    if "Snowflake" in kinds:
        pattern, ones, lone = _SNOWFLAKE, _SNOWFLAKE_ONES, None
    else:
        pattern, ones, lone = _SPARK if "Spark" in kinds else _HIVE, _SPARK_ONES, "?"

    def character(found: re.Match[str]) -> str:
        if found["high"]:
            high, low = int(found["high"], 16), int(found["low"], 16)
            return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))
        if found["octal"]:
            return chr(int(found["octal"], 8))
        digits = found["four"] or found["hex"]
        if digits:
            code = int(digits, 16)
            # A lone surrogate is not a character.
            half = 0xD800 <= code < 0xE000
            return (found[0][1:] if lone is None else lone) if half else chr(code)
        if not found["other"]:
            return "'"
        return ones.get(found["other"], found["other"])

    return pattern.sub(character, body)


# ------------------------------------------------------------------ remainders
# sqlglot before 30.20 gives ``a % b`` the precedence of sums: ``1 + 5 % 3`` would be
# ``(1 + 5) % 3``. The percent sign is replaced by the token of an operator with the precedence of
# products; after parsing, the nodes of that operator become remainders again.


# DuckDB's ``a <-> b``, the distance between two lists.
_PRODUCT: Final = TokenType.LR_ARROW
_PRODUCTS: Final = (exp.Mul, exp.Div, exp.IntDiv, exp.Mod)
_ENDS: Final = frozenset(
    {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.COMMA}
    | {TokenType.SEMICOLON}
)
_OPENING: Final = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE})
_CLOSING: Final = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE})
# A percent sign after these belongs to a row count.
_COUNTS: Final = frozenset({TokenType.LIMIT, TokenType.TABLE_SAMPLE})
_CLAUSES: Final = frozenset(
    {TokenType.SELECT, TokenType.FROM, TokenType.WHERE, TokenType.ON, TokenType.COMMA}
    | {TokenType.OFFSET, TokenType.GROUP_BY, TokenType.ORDER_BY, TokenType.HAVING}
)


def has_remainders(tokens: Sequence[Token]) -> bool:
    """True if the tokens contain a percent sign, or a call of mod, which is written as one."""
    return any(token.token_type == TokenType.MOD or token.text.lower() == "mod" for token in tokens)


def as_products(tokens: Sequence[Token]) -> list[Token]:
    """Give every remainder the precedence of a product; ``LIMIT 10%`` stays.

    Raises UnsupportedSqlError for ``<->`` beside a remainder.
    """
    made = []
    for index, token in enumerate(tokens):
        if token.token_type == TokenType.MOD and not _is_percentage(tokens, index):
            token = respelt(token, _PRODUCT, token.text)
        elif token.token_type == _PRODUCT:
            hint = "write list_distance(a, b), or install sqlglot 30.20 or newer"
            raise unsupported(f"{token.text} beside %", token.start, hint)
        made.append(token)
    return made


def remainders(tree: exp.Expr | None) -> exp.Expr | None:
    """Turn the products of ``as_products`` back into remainders; the root may be a new node."""
    if tree is None:
        return None
    for node in list(tree.find_all(exp.Distance)):
        made = exp.Mod(this=node.this, expression=node.expression, comments=node.comments)
        if node is tree:
            tree = made
        else:
            node.replace(made)
    in_parentheses(tree)
    return tree


def in_parentheses(tree: exp.Expr) -> None:
    """Put ``a * mod(b, c)`` in parentheses: these releases would write ``a * b % c``."""
    for node in list(tree.find_all(exp.Mod)):
        if isinstance(node.parent, _PRODUCTS) and node.parent.expression is node:
            node.replace(exp.Paren(this=node.copy()))


def _is_percentage(tokens: Sequence[Token], index: int) -> bool:
    """True if a percent sign follows a row count, as in LIMIT 10%."""
    if index + 1 >= len(tokens) or tokens[index + 1].token_type in _ENDS:
        return True
    depth = 0
    for at in range(index - 1, -1, -1):
        token = tokens[at]
        if token.token_type in _CLOSING:
            depth += 1
        elif token.token_type in _OPENING:
            depth -= 1
            if depth < 0:
                return False
        elif not depth:
            sampled = token.text.upper() == "SAMPLE" and at > 0
            if sampled and tokens[at - 1].token_type == TokenType.USING:
                return True
            if token.token_type in _COUNTS:
                return True
            if token.token_type in _CLAUSES:
                return False
    return False


# ------------------------------------------------------------------ writing
# However deep the chains of a tree are.


# sqlglot's generator takes about five of Python's 1,000 stack frames for each level.
_MOST_LEVELS: Final = 60


# Key in the ``meta`` of the root of a tree that was translated from another dialect.
TRANSLATED: Final = "translated"


def write_sql(tree: exp.Expr, dialect: str) -> str:
    """Return the SQL of ``tree``; may change the tree.

    Raises UnsupportedSqlError for a translated tree with a node that ``dialect`` cannot express.
    """
    prepare_to_write(tree)
    level = ErrorLevel.RAISE if tree.meta.get(TRANSLATED) else ErrorLevel.IGNORE
    write = partial(tree.sql, dialect=dialect, unsupported_level=level, comments=False)
    try:
        return str(write())
    except RecursionError:
        _shorten(tree, dialect)
        return str(write())
    except UnsupportedError as error:
        raise unsupported(f"this translation ({error})", None) from error


def _shorten(tree: exp.Expr, dialect: str) -> None:
    """Replace deep operands, innermost first, by nodes that hold their SQL text."""
    heights: dict[int, int] = {}
    for node in reversed(list(tree.dfs())):
        height = 1 + max((heights[id(each)] for each in node.iter_expressions()), default=0)
        if isinstance(node, exp.Connector):
            # The generator writes chains of connectors without recursion.
            height -= isinstance(node.parent, exp.Connector)
        elif height >= _MOST_LEVELS and isinstance(node, exp.Binary | exp.Unary | exp.Func):
            text = exp.Var(
                this=node.sql(dialect=dialect, unsupported_level=ErrorLevel.IGNORE, comments=False)
            )
            node.replace(text)
            heights[id(text)] = 1
            continue
        heights[id(node)] = height
