"""An expression reduced to names and arguments, and its conversion from the engine's own tree."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from sqlglot import exp
from sqlglot.errors import SqlglotError

from icesql.errors import Error
from icesql.frozen import Frozen
from icesql.query.constants.session_values import GETVARIABLE
from icesql.query.constants.volatile import is_clock
from icesql.sql.acceptance import SESSION_CALLS
from icesql.sql.parser.literal_list import MARK, held
from icesql.sql.reading.data_types import DUCKDB_NAMES
from icesql.sql.reading.engine_tree import engine_node, read_tree

# Larger expressions are not evaluated for pruning.
MOST_NODES: Final = 200

OPPOSITE: Final = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
COMPARISONS: Final = tuple(OPPOSITE)
FLIPPED: Final = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


class Expression(Frozen):
    """A node: ``name`` of a function or operator in lower case, and its arguments in order.

    Leaves are ``input`` (``value`` is a column of the tree, or once resolved a field of the
    scan), ``literal`` (``value`` is a pair of its kind and its text), ``list`` (``value`` is a
    LiteralList) and ``constant`` (``value`` is a Constant computed by the engine, its one
    argument the expression evaluated). ``cast`` and ``try_cast`` have the type's name in ``value``.
    ``case`` has conditions and values in turn and the ELSE last. ``opaque`` is an unknown
    expression; ``value`` may give the reason.
    """

    name: str
    arguments: tuple[Expression, ...] = ()
    value: Any = None

    def walk(self) -> list[Expression]:
        """This node and all nodes below it."""
        found = [self]
        for each in found:
            found.extend(each.arguments)
        return found

    def outermost(self, names: Collection[str]) -> list[Expression]:
        """The nodes with one of these names that are not inside another such node."""
        if self.name in names:
            return [self]
        return [found for each in self.arguments for found in each.outermost(names)]

    def free_parts(self) -> list[Expression]:
        """The largest parts without columns or opaque nodes."""
        if self.is_free:
            return [self]
        return [found for each in self.arguments for found in each.free_parts()]

    def is_column(self, *types: type) -> bool:
        """True for a column of the scan with one of these types."""
        return self.name == "input" and isinstance(self.value.type, types)

    @property
    def inputs(self) -> list[Expression]:
        """Every column in the expression, once for each occurrence."""
        return [each for each in self.walk() if each.name == "input"]

    @property
    def is_free(self) -> bool:
        """True without columns and opaque nodes."""
        return all(each.name not in ("input", "opaque") for each in self.walk())

    @property
    def text(self) -> str | None:
        """The text of a string literal, None for other nodes."""
        if self.name == "literal" and self.value[0] == "STRING":
            return str(self.value[1])
        return None

    @property
    def whole_number(self) -> int | None:
        """The value of an integer literal, None for other nodes."""
        if self.name == "literal" and self.value[0] == "INTEGER":
            return int(self.value[1])
        return None


def literal(kind: str, text: str) -> Expression:
    """A literal of this kind."""
    return Expression("literal", (), (kind, text))


OPAQUE: Final = Expression("opaque")
TRUE: Final = literal("BOOLEAN", "true")
FALSE: Final = literal("BOOLEAN", "false")


def string(text: str) -> Expression:
    """A string literal."""
    return literal("STRING", text)


def whole(number: int) -> Expression:
    """An integer literal."""
    return literal("INTEGER", str(number))


def call(name: str, *arguments: Expression) -> Expression:
    """A call of a function or operator."""
    return Expression(name, arguments)


def conjunction(name: str, parts: list[Expression]) -> Expression:
    """``and`` or ``or`` of several parts; a single part unchanged."""
    return parts[0] if len(parts) == 1 else Expression(name, tuple(parts))


def replaced(
    expression: Expression,
    change: Callable[[Expression], Expression | None],
    names: Collection[str] | None = None,
) -> Expression:
    """The expression with each node replaced for which ``change`` returns another, outer first.

    With ``names``, ``change`` is called only for nodes with one of these names.
    """
    found = change(expression) if names is None or expression.name in names else None
    if found is not None:
        return found
    if not expression.arguments:
        return expression
    return Expression(
        expression.name,
        tuple(replaced(each, change, names) for each in expression.arguments),
        expression.value,
    )


# ------------------------------------------------------------------ the engine's tree


Node = Mapping[str, Any]
# Expressions by offset in the text and by names; the names of a value are empty.
_Leaves = dict[tuple[int, tuple[str, ...]], Expression]

_COMPARISONS: Final = {
    "COMPARE_EQUAL": "=",
    "COMPARE_NOTEQUAL": "<>",
    "COMPARE_LESSTHAN": "<",
    "COMPARE_LESSTHANOREQUALTO": "<=",
    "COMPARE_GREATERTHAN": ">",
    "COMPARE_GREATERTHANOREQUALTO": ">=",
    "COMPARE_NOT_DISTINCT_FROM": "is not distinct from",
    "COMPARE_DISTINCT_FROM": "is distinct from",
}
_OPERATORS: Final = {
    "OPERATOR_NOT": "not",
    "OPERATOR_IS_NULL": "is null",
    "OPERATOR_IS_NOT_NULL": "is not null",
    "OPERATOR_COALESCE": "coalesce",
    "COMPARE_IN": "in",
    "CONJUNCTION_AND": "and",
    "CONJUNCTION_OR": "or",
    "ARRAY_EXTRACT": "array_extract",
    "ARRAY_SLICE": "array_slice",
    "STRUCT_EXTRACT": "array_extract",
}
# Names of expressions that are no functions; a call of one that has such a name is another thing.
_NO_FUNCTIONS: Final = frozenset(
    {*_COMPARISONS.values(), "not", "is null", "is not null", "in", "and", "or", "between", "case",
     "cast", "try_cast", "literal", "input", "opaque", "clock", "list"}
)  # fmt: skip
# How many arguments functions have where others read them by their places; the engine refuses
# other numbers.
_COUNTS: Final = {
    **dict.fromkeys(("lower", "upper"), (1,)),
    **dict.fromkeys(("+", "-"), (1, 2)),
    **dict.fromkeys(("*", "/", "~~", "!~~", "left", "starts_with", "array_extract"), (2,)),
    **dict.fromkeys(("substr", "substring"), (2, 3)),
}
_LITERALS: Final = ("INTEGER", "NUMERIC", "STRING", "BOOLEAN", "NULL")
# The clauses that a SELECT of one list has not.
_CLAUSES: Final = ("where_clause", "modifiers", "sample", "group_sets", "having", "qualify")
_ONE_KIND: Final = ({"INTEGER"}, {"STRING"})


def expression_of(node: exp.Expr) -> Expression:
    """The expression of a condition or a column; its inputs are columns of the sqlglot tree.

    Parts unknown to ``query.pushdown.computed`` are opaque.
    """
    found = engine_node(node)
    try:
        if isinstance(node, exp.Column | exp.Dot) and (path := _path(node)) is not None:
            return _input(node, path)
        if found is not None:
            made = _Converter(_leaves(node), found.sql_place).read(found.value)
            # sqlglot's tree distinguishes methods of a column from calls with a schema.
            return expression_of_text(node) if OPAQUE in made.walk() else made
        match node:
            case exp.Paren():
                return expression_of(node.this)
            case exp.And():
                return Expression("and", tuple(map(expression_of, node.flatten())))
        return expression_of_text(node)
    except RecursionError:
        return OPAQUE


def _leaves(node: exp.Expr) -> _Leaves:
    """The columns, values and long lists of a tree, by their offsets in its text."""
    found: _Leaves = {}
    for each in node.walk():
        if "parameter_at" in each.meta:
            found[each.meta["parameter_at"], ()] = expression_of_value(each)
        elif isinstance(each, exp.Column | exp.Dot):
            path = _path(each)
            if path is not None and "start" in path[0].meta:
                names = tuple(part.name for part in path)
                found[int(path[0].meta["start"]), names] = _input(each, path)
        elif (values := held(each)) is not None and "list" in each.meta:
            start, _, before, _ = each.meta["list"]
            found[start + len(before), (MARK,)] = Expression("list", (), values)
    return found


def expression_of_text(node: exp.Expr) -> Expression:
    """The expression of a tree that was not made from a tree of DuckDB's parser."""
    kinds = exp.Column | exp.In
    originals = [each for each in node.walk() if isinstance(each, kinds)]
    copy = node.copy()
    twins = [each for each in copy.walk() if isinstance(each, kinds)]
    found: _Leaves = {}
    for number, (original, twin) in enumerate(zip(originals, twins, strict=True)):
        named = exp.column(f"leaf_{number}")
        values, path = held(original), _path(original)
        if values is not None:
            twin.set("literals", None)
            twin.set("expressions", [named])
            found[0, (named.name,)] = Expression("list", (), values)
        elif path is not None:
            found[0, (named.name,)] = _input(original, path)
            if twin is copy:
                copy = named
            else:
                twin.replace(named)
    try:
        tree = read_tree(f"SELECT {copy.sql(dialect='duckdb')}")
        (selected,) = tree.statements[0]["select_list"]
    except (Error, SqlglotError, ValueError, LookupError):
        return OPAQUE
    return _Converter(found, lambda _: 0).read(selected)


def _input(node: exp.Expr, path: Sequence[exp.Expr]) -> Expression:
    if isinstance(node, exp.Dot):
        return call("array_extract", _input(node.this, path[:-1]), string(path[-1].name))
    return Expression("input", (), node)


def _path(node: exp.Expr) -> list[exp.Expr] | None:
    """The identifiers of ``a.b.c``; None for other nodes."""
    if isinstance(node, exp.Column):
        return None if isinstance(node.this, exp.Star) else list(node.parts)
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        before = _path(node.this)
        return None if before is None else [*before, node.expression]
    return None


def expression_of_value(node: exp.Expr) -> Expression:
    """The expression of a value that was put into a tree: a literal, also in a cast."""
    match node:
        case exp.Literal():
            text = str(node.this)
            kind = "STRING" if node.is_string else "INTEGER" if text.isdigit() else "NUMERIC"
            return literal(kind, text)
        case exp.Null():
            return literal("NULL", "")
        case exp.Boolean():
            return literal("BOOLEAN", str(bool(node.this)).lower())
        case exp.Neg(this=exp.Literal()):
            kind, text = expression_of_value(node.this).value
            return literal(kind, f"-{text}")
        case exp.Cast(this=exp.Literal() | exp.Neg() | exp.Null()):
            return Expression(
                "cast", (expression_of_value(node.this),), node.to.sql(dialect="duckdb")
            )
        case _:
            return OPAQUE


class _Converter:
    """Converts one expression."""

    def __init__(self, leaves: _Leaves, place: Callable[[int], int]) -> None:
        self._leaves, self._place = leaves, place

    def read(self, found: Node) -> Expression:
        """The expression of a node; opaque if it is not known."""
        kind = str(found["type"])
        if kind in _COMPARISONS:
            return call(_COMPARISONS[kind], self.read(found["left"]), self.read(found["right"]))
        if kind in _OPERATORS:
            return Expression(_OPERATORS[kind], tuple(map(self.read, found["children"])))
        match kind:
            case "VALUE_CONSTANT":
                given = found.get("literal") or {}
                known = str(given.get("kind")).removesuffix("_LITERAL")
                return literal(known, str(given.get("text", ""))) if known in _LITERALS else OPAQUE
            case "COLUMN_REF":
                names = tuple(map(str, found["column_names"]))
                leaf = self._at(found, names)
                if leaf is None and len(names) == 1 and is_clock(names[0].lower()):
                    return Expression("clock", (), names[0].lower())
                return leaf or OPAQUE
            case "FUNCTION":
                return self._function(found)
            case "OPERATOR_CAST":
                name = "try_cast" if found.get("try_cast") else "cast"
                to = _type(found["type_expr"])
                return Expression(name, (self.read(found["child"]),), to) if to else OPAQUE
            case "COMPARE_BETWEEN":
                operands = (found["input"], found["lower"], found["upper"])
                return Expression("between", tuple(map(self.read, operands)))
            case "CASE_EXPR":
                parts = [
                    self.read(check[part])
                    for check in found["case_checks"]
                    for part in ("when_expr", "then_expr")
                ]
                return Expression("case", (*parts, self.read(found["else_expr"])))
            case "VALUE_PARAMETER":
                return self._at(found, ()) or OPAQUE
            case "SUBQUERY":
                return self._any_of_list(found) or Expression(
                    "opaque", (), "it depends on a subquery"
                )
            case _:
                return OPAQUE

    def _at(self, found: Node, names: tuple[str, ...]) -> Expression | None:
        return self._leaves.get((self._place(int(found["query_location"])), names))

    def _function(self, found: Node) -> Expression:
        name = str(found["function_name"]).lower()
        given = _plain_arguments(found)
        if given is None or name in _NO_FUNCTIONS:
            return OPAQUE
        if name in SESSION_CALLS or name == GETVARIABLE:
            return self._at(found, ()) or OPAQUE
        if not given and is_clock(name):
            return Expression("clock", (), name)
        arguments = tuple(map(self.read, given))
        if len(arguments) not in _COUNTS.get(name, (len(arguments),)):
            return OPAQUE
        if len(arguments) == 3:
            first, second, third = arguments
            if name == "if":
                return Expression("case", arguments)
            is_prefix = second.whole_number == 1 and (third.whole_number or 0) > 0
            if name in ("substring", "substr") and is_prefix:
                return call("left", first, third)
        return Expression(name, arguments)

    def _any_of_list(self, found: Node) -> Expression | None:
        """``x = ANY ([1, 2])``, which DuckDB's parser turns into a subquery; None for others."""
        query = found["subquery"]["node"]
        selected = query.get("select_list", ())
        plain = (
            found.get("subquery_type") == "ANY"
            and found.get("comparison_type") == "COMPARE_EQUAL"
            and query["type"] == "SELECT_NODE"
            and query["from_table"]["type"] == "EMPTY"
            and len(selected) == 1
            and not any(map(query.get, _CLAUSES))
        )
        if not plain or not found.get("child"):
            return None
        unnest = self.read(selected[0])
        if unnest.name != "unnest" or len(unnest.arguments) != 1:
            return None
        items = unnest.arguments[0]
        # The engine converts the items to one type before it compares them: times without a zone
        # become instants in UTC. Only plain numbers and texts are unambiguous.
        kinds = {each.value[0] if each.name == "literal" else "" for each in items.arguments}
        if items.name != "list_value" or kinds not in _ONE_KIND:
            return None
        return Expression("in", (self.read(found["child"]), *items.arguments))


def _type(found: Node) -> str | None:
    name = DUCKDB_NAMES.get(str(found.get("type_name")).upper())
    if found.get("type") != "TYPE" or name is None:
        return None
    if len(found.get("qualified_name", {}).get("path", ())) > 1:
        return None
    sizes = [(each.get("literal") or {}).get("text") for each in found.get("children") or ()]
    if not sizes or name == "VARCHAR":  # DuckDB ignores its length
        return name
    if name != "DECIMAL" or not all(str(each).isdigit() for each in sizes):
        return None
    return f"DECIMAL({', '.join(map(str, sizes))})"


def _plain_arguments(called: Node) -> list[Node] | None:
    """The arguments of a call; None with a schema, DISTINCT, FILTER, ORDER BY or names."""
    if len(called["qualified_name"]["path"]) > 1 or called["order_bys"]["orders"]:
        return None
    if called["distinct"] or called["filter"] or any(each["name"] for each in called["arguments"]):
        return None
    return [each["expression"] for each in called["arguments"]]
