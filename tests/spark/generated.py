"""Statements drawn from the grammar's clauses and the function table, for both engines to answer.

Arguments of a function are those of its example in the table, or expressions of the same kind over
the columns of ``all_types``; NULL, NaN, -0.0, empty texts and nested values are among its rows.
"""

from __future__ import annotations

import functools
import random
from collections import Counter
from collections.abc import Callable
from typing import Final

import sqlglot
from msgspec import Struct
from sqlglot import exp

from icesql.sql.functions import functions

# Columns of all_types by kind.
COLUMNS: Final = {
    "integer": ["id", "i", "big"],
    "float": ["d", "f"],
    "decimal": ["dec", "wide"],
    "text": ["s"],
    "date": ["dt"],
    "timestamp": ["ts"],
    "instant": ["tz"],
    "boolean": ["flag"],
    "list": ["l"],
    "map": ["m"],
    "struct": ["st"],
}
LITERALS: Final = {
    "integer": ["0", "1", "-3", "7", "NULL::INT", "2147483647"],
    "float": ["0.5::DOUBLE", "'nan'::DOUBLE", "'-inf'::DOUBLE", "-0.0::DOUBLE", "NULL::DOUBLE"],
    "decimal": ["2.50", "-0.01", "0.00", "NULL::DECIMAL(5,2)"],
    "text": ["'hello'", "''", "'a\\_b'", "'%l_o'", "'naïve'", "NULL::VARCHAR"],
    "date": ["DATE '2026-01-31'", "DATE '1582-10-10'", "DATE '1969-12-31'", "NULL::DATE"],
    "timestamp": ["TIMESTAMP '2024-02-29 00:00:00'", "TIMESTAMP '1969-12-31 23:59:59.000001'"],
    "instant": ["TIMESTAMPTZ '2024-07-01 04:00:00+00'"],
    "boolean": ["true", "false", "NULL::BOOLEAN"],
    "list": ["[1, NULL, 3]", "[7]"],
}
# Kinds that GROUP BY, ORDER BY and comparisons take on both engines.
PLAIN: Final = ("integer", "float", "decimal", "text", "date", "timestamp", "instant", "boolean")
_OPERATORS: Final = {
    "integer": ["{0:integer} + {1:integer}", "{0:integer} - {1:integer}", "{0:integer} % 5",
                "{0:integer} // 3", "-{0:integer}", "length({0:text})", "l[1]", "m['a']", "st.x",
                "CASE WHEN {0:boolean} THEN {1:integer} END"],
    "float": ["{0:integer} / {1:integer}", "{0:float} / {1:float}", "{0:float} * 2", "{0:float} / 0",
              "{0:decimal} / 2", "{0:integer} / 0"],
    "decimal": ["{0:decimal} + 1", "{0:decimal} * 2", "-{0:decimal}"],
    "text": ["{0:text} || 'x'", "upper({0:text})", "CAST({0:integer} AS VARCHAR)",
             "coalesce({0:text}, 'none')"],
    "date": ["{0:date} + 1", "CAST({0:timestamp} AS DATE)"],
    "timestamp": ["{0:timestamp} + INTERVAL 1 DAY", "date_trunc('month', {0:timestamp})"],
    "instant": [],
    "boolean": ["{0:integer} < {1:integer}", "{0:float} >= {1:float}", "{0:text} = {1:text}",
                "{0:text} LIKE '%l%'", "{0:integer} IS NULL", "NOT {0:boolean}",
                "{0:boolean} AND {1:boolean}", "{0:boolean} OR {1:boolean}",
                "{0:integer} IN (1, 7, NULL)", "{0:date} BETWEEN '2000-01-01' AND '2026-06-01'",
                "{0:decimal} IS DISTINCT FROM {1:decimal}", "isnan({0:float})",
                "list_contains({0:list}, 3)", "{0:float} = {1:float}"],
    "list": ["l[1:2]", "list_concat({0:list}, [2])"],
}  # fmt: skip
_AGGREGATES: Final = (
    "count(*)", "count({0})", "count(DISTINCT {0})", "min({0:plain})", "max({0:plain})",
    "sum({0:integer})", "sum({0:decimal})", "avg({0:integer})", "avg({0:decimal})",
    "bool_and({0:boolean})", "bool_or({0:boolean})", "count_if({0:boolean})",
    "median({0:integer})", "stddev({0:integer})", "var_pop({0:integer})",
    "list({0:integer} ORDER BY id)", "list({0:text} ORDER BY {1:integer} DESC, id)",
    "string_agg({0:text}, ',' ORDER BY id)", "arg_max({0:text}, id)", "arg_min({0:integer}, id)",
    "sum({0:integer}) FILTER (WHERE {1:boolean})", "count(*) FILTER (WHERE {1:boolean})",
    "quantile_cont({0:integer}, 0.5)", "first({0:integer} ORDER BY id)",
    "last({0:integer} ORDER BY id)",
)  # fmt: skip
_WINDOWS: Final = (
    "row_number() OVER ({w}, id)", "rank() OVER ({w})", "dense_rank() OVER ({w})",
    "ntile(3) OVER ({w}, id)", "percent_rank() OVER ({w})", "cume_dist() OVER ({w})",
    "lag({0:integer}) OVER ({w}, id)", "lead({0:text}, 2) OVER ({w}, id)",
    "first_value({0:text}) OVER ({w}, id)", "last_value({0:integer}) OVER ({w}, id)",
    "last_value({0:integer} IGNORE NULLS) OVER ({w}, id)",
    "first_value({0:decimal} IGNORE NULLS) OVER ({w}, id)",
    "last({0:integer} IGNORE NULLS) OVER ({w}, id)",
    "lag({0:integer} IGNORE NULLS) OVER ({w}, id)",
    "nth_value({0:integer}, 2) OVER ({w}, id)", "sum({0:integer}) OVER ({w}, id {frame})",
    "count({0:text}) OVER ({w}, id {frame})", "max({0:plain}) OVER ({w}, id {frame})",
    "avg({0:integer}) OVER ({w}, id {frame})", "sum({0:decimal}) OVER ({w})",
    "count(*) OVER (PARTITION BY {k})",
)  # fmt: skip
_FRAMES: Final = (
    "", "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
    "ROWS BETWEEN 2 FOLLOWING AND UNBOUNDED FOLLOWING",
)  # fmt: skip
_AGGREGATE_NODES: Final = (exp.AggFunc, exp.Window, exp.Unnest, exp.Explode, exp.Grouping)


class Statement(Struct, frozen=True):
    """A statement, what it is an example of, and whether its rows have an order."""

    sql: str
    kinds: tuple[str, ...]


@functools.cache
def _scalar_functions() -> tuple[tuple[str, exp.Expr], ...]:
    found = []
    for row in functions():
        tree = sqlglot.parse_one(f"SELECT {row.example}", dialect="duckdb")
        assert isinstance(tree, exp.Select)
        plain = tree.args.get("from_") is None and tree.find(*_AGGREGATE_NODES) is None
        if plain and not row.result.startswith(("list", "struct", "any")):
            found.append((row.name, tree.selects[0]))
    return tuple(found)


def _kind_of_literal(node: exp.Expr) -> str | None:
    match node:
        case exp.Literal():
            if node.is_string:
                return "text"
            return "decimal" if "." in node.name else "integer"
        case exp.Cast() if isinstance(node.this, exp.Literal | exp.Neg):
            name = node.to.sql(dialect="duckdb").partition("(")[0]
            kinds = {"DATE": "date", "TIMESTAMP": "timestamp", "DOUBLE": "float"}
            return kinds.get(name)
        case _:
            return None


class Generator:
    """Draws statements; the same seed draws the same ones. ``drawn`` counts their kinds."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.drawn: Counter[str] = Counter()

    def statement(self) -> Statement:
        """The next one."""
        makers: list[Callable[[], Statement]] = [
            self._expressions, self._expressions, self._aggregates, self._grouping_sets,
            self._windows, self._windows, self._set_operation, self._join, self._subquery,
            self._limit, self._nested, self._unnamed,
        ]  # fmt: skip
        made = self._random.choice(makers)()
        self.drawn.update(made.kinds)
        for word in ("NULL", "nan", "l[", "st.", "m['", "list", "IGNORE NULLS", "/ 0"):
            if word in made.sql:
                self.drawn[word.strip("[.'/ ")] += 1
        return made

    # ------------------------------------------------------------------ expressions

    def _of(self, kind: str, depth: int = 0) -> str:
        if kind == "plain":
            kind = self._random.choice(PLAIN)
        roll = self._random.random()
        if kind in _OPERATORS and _OPERATORS[kind] and depth < 2 and roll < 0.3:
            return f"({self._filled(self._random.choice(_OPERATORS[kind]), depth + 1)})"
        if kind in LITERALS and roll > 0.92:
            return f"({self._random.choice(LITERALS[kind])})"
        if kind == "float":
            return self._random.choice(["r.d", "r.d", "r.f"])
        return "r." + self._random.choice(COLUMNS[kind])

    def _filled(self, template: str, depth: int = 0) -> str:
        made = template
        for at in (0, 1):
            for kind in (*COLUMNS, "plain"):
                made = made.replace(f"{{{at}:{kind}}}", self._of(kind, depth))
            made = made.replace(f"{{{at}}}", self._of("plain", depth))
        return made

    def _call(self) -> str:
        """A function of the table over other arguments than those of its example."""
        name, node = self._random.choice(_scalar_functions())
        node = node.copy()
        self.drawn[f"function {name}"] += 1
        call = next((each for each in node.walk() if isinstance(each, exp.Func)), None)
        target = call.this if call is not None else None
        if isinstance(target, exp.Expr) and self._random.random() < 0.85:
            kind = _kind_of_literal(target)
            if kind is not None:
                target.replace(sqlglot.parse_one(self._of(kind, 1), dialect="duckdb"))
        return str(node.sql(dialect="duckdb"))

    def _column(self) -> str:
        if self._random.random() < 0.4:
            return self._call()
        return self._of(self._random.choice([*PLAIN, *PLAIN, "list"]))

    def _where(self) -> str:
        return f" WHERE {self._of('boolean')}" if self._random.random() < 0.5 else ""

    def _expressions(self) -> Statement:
        columns = ", ".join(f"{self._column()} AS c{at}" for at in range(4))
        return Statement(
            f"SELECT r.id, {columns} FROM t AS r{self._where()} ORDER BY r.id", ("expressions",)
        )

    # ------------------------------------------------------------------ many rows

    def _key(self) -> str:
        return self._random.choice(
            ["r.i", "r.s", "r.flag", "r.d", "r.f", "r.dec", "r.i % 3", "r.dt", "r.big > 0"]
        )

    def _aggregate(self) -> str:
        return self._filled(self._random.choice(_AGGREGATES))

    def _aggregates(self) -> Statement:
        aggregates = ", ".join(f"{self._aggregate()} AS a{at}" for at in range(3))
        if self._random.random() < 0.4:
            return Statement(f"SELECT {aggregates} FROM t AS r{self._where()}", ("aggregates",))
        having = " HAVING count(*) > 1" if self._random.random() < 0.3 else ""
        return Statement(
            f"SELECT {self._key()} AS k, {aggregates} FROM t AS r{self._where()} GROUP BY k{having} "
            "ORDER BY k",
            ("GROUP BY",),
        )

    def _grouping_sets(self) -> Statement:
        keys = self._random.sample(["r.i", "r.s", "r.flag", "r.dec"], 2)
        a, b = keys
        form = self._random.choice(
            [f"ROLLUP ({a}, {b})", f"CUBE ({a}, {b})", f"GROUPING SETS (({a}), ({b}))",
             f"GROUPING SETS (({a}, {b}), ({a}), ())", f"GROUPING SETS (({b}), ())"]
        )  # fmt: skip
        shown = [a, b] if a in form and b in form else [b]
        listed = ", ".join(f"{key} AS k{at}" for at, key in enumerate(shown))
        grouping = ", ".join(f"grouping({key}) AS g{at}" for at, key in enumerate(shown))
        aggregates = f"count(*) AS n, {self._aggregate()} AS x"
        return Statement(
            f"SELECT {listed}, {grouping}, {aggregates} FROM t AS r{self._where()} GROUP BY {form} "
            "ORDER BY ALL",
            ("grouping sets",),
        )

    def _windows(self) -> Statement:
        made = []
        for at in range(3):
            down = self._random.choice(["", " DESC", " NULLS FIRST", " DESC NULLS LAST"])
            window = f"ORDER BY {self._key()}{down}"
            if self._random.random() < 0.5:
                window = f"PARTITION BY {self._key()} {window}"
            template = self._random.choice(_WINDOWS)
            text = self._filled(template.replace("{k}", self._key()))
            text = text.replace("{w}", window).replace("{frame}", self._random.choice(_FRAMES))
            made.append(f"{text} AS w{at}")
        qualify = ""
        if self._random.random() < 0.2:
            qualify = f" QUALIFY row_number() OVER (PARTITION BY {self._key()} ORDER BY r.id) = 1"
        return Statement(
            f"SELECT r.id, {', '.join(made)} FROM t AS r{self._where()}{qualify} ORDER BY r.id",
            ("windows", *(["QUALIFY"] if qualify else [])),
        )

    def _set_operation(self) -> Statement:
        kind = self._random.choice(PLAIN)
        word = self._random.choice(
            ["UNION", "UNION ALL", "INTERSECT", "EXCEPT", "EXCEPT ALL", "INTERSECT ALL"]
        )
        return Statement(
            f"SELECT {self._of(kind)} AS c FROM t AS r {word} "
            f"SELECT {self._of(kind)} FROM t AS r{self._where()} ORDER BY c",
            ("set operations",),
        )

    def _join(self) -> Statement:
        kind = self._random.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
        key = self._random.choice(["i", "s", "d", "dec", "flag", "dt"])
        other = self._random.choice(["", " AND r.id < u.id", " AND u.big > 0"])
        if self._random.random() < 0.25:
            word = self._random.choice(["SEMI", "ANTI"])
            return Statement(
                f"SELECT r.id FROM t AS r {word} JOIN t AS u ON r.{key} = u.{key}{other} ORDER BY r.id",
                ("joins",),
            )
        return Statement(
            f"SELECT r.id, u.id AS other, {self._of('plain')} AS c FROM t AS r {kind} t AS u "
            f"ON r.{key} = u.{key}{other} ORDER BY ALL",
            ("joins",),
        )

    def _subquery(self) -> Statement:
        key = self._random.choice(["i", "s", "dec", "dt"])
        condition = self._random.choice(
            [f"r.{key} IN (SELECT u.{key} FROM t u WHERE u.id > 3)",
             f"r.{key} NOT IN (SELECT u.{key} FROM t u WHERE u.id > 3)",
             f"EXISTS (SELECT 1 FROM t u WHERE u.{key} = r.{key} AND u.id <> r.id)",
             f"NOT EXISTS (SELECT 1 FROM t u WHERE u.{key} = r.{key} AND u.id <> r.id)",
             f"r.{key} = (SELECT max(u.{key}) FROM t u)",
             f"r.id > (SELECT count(*) FROM t u WHERE u.{key} = r.{key})"]
        )  # fmt: skip
        if self._random.random() < 0.3:
            return Statement(
                f"WITH q AS (SELECT r.id, {self._of('plain')} AS c FROM t AS r WHERE {condition}) "
                "SELECT q.id, q.c FROM q ORDER BY q.id",
                ("subqueries", "WITH"),
            )
        return Statement(
            f"SELECT r.id FROM t AS r WHERE {condition}{' OR r.id = 3' * (self._random.random() < 0.2)} "
            "ORDER BY r.id",
            ("subqueries",),
        )

    def _limit(self) -> Statement:
        order = f"{self._of('plain')}{self._random.choice(['', ' DESC', ' NULLS FIRST'])}"
        if self._random.random() < 0.4:
            key = self._key()
            return Statement(
                f"SELECT DISTINCT {key} AS k FROM t AS r{self._where()} ORDER BY k LIMIT 4",
                ("DISTINCT", "LIMIT"),
            )
        return Statement(
            f"SELECT r.id, {self._column()} AS c FROM t AS r{self._where()} ORDER BY {order}, r.id "
            f"LIMIT {self._random.randrange(6)} OFFSET {self._random.randrange(3)}",
            ("LIMIT",),
        )

    def _nested(self) -> Statement:
        columns = self._random.sample(
            ["l", "m", "st", "l[1]", "l[-1]", "l[r.i]", "m['a']", "st.x", "len(l)", "list_sum(l)",
             "[r.i, NULL]", "{'a': r.i, 'b': r.s}", "list_contains(l, r.i)", "l || [1]",
             "struct_extract({'a': r.d}, 'a')", "[[r.i], [2]]", "{'n': {'m': r.dt}}"],
            4,
        )  # fmt: skip
        if self._random.random() < 0.3:
            return Statement(
                f"SELECT r.id, unnest(l) AS e, {columns[0]} AS c FROM t AS r ORDER BY r.id, e",
                ("nested values", "unnest"),
            )
        listed = ", ".join(f"{each} AS c{at}" for at, each in enumerate(columns))
        return Statement(
            f"SELECT r.id, {listed} FROM t AS r{self._where()} ORDER BY r.id", ("nested values",)
        )

    # ------------------------------------------------------------------ names

    def _unnamed(self) -> Statement:
        """Items without an alias or with that of a column, under ORDER BY by a bare name."""
        items = [self._unnamed_item() for _ in range(self._random.randrange(1, 4))]
        wrap = self._random.choice(["", "", "DISTINCT", "GROUP BY", "subquery", "WITH"])
        key = self._random.choice(["id", "i", "big", "dec", "dt", "s", "x"])
        if key == "x":
            key, items = "id", [*items, "st.x"]
        down = self._random.choice(["", " DESC", " NULLS FIRST"])
        listed = ", ".join(items)
        limit = f" LIMIT {self._random.randrange(1, 6)}" if self._random.random() < 0.6 else ""
        inside = self._random.choice(["{0}", "{0}", "{0}", "coalesce({0}, NULL)"]).format(key)
        kinds = ("names", f"names {wrap}")
        if wrap == "DISTINCT":
            # The rest of the items makes the order total.
            rest = ", ".join(str(at + 2) for at in range(len(items)))
            return Statement(
                f"SELECT DISTINCT CAST({key} AS VARCHAR), {listed} FROM t AS r "
                f"ORDER BY {key}{down}, 1, {rest}{limit}",
                kinds,
            )
        if wrap == "GROUP BY":
            return Statement(
                f"SELECT CAST({key} AS VARCHAR), count(*), max(id) FROM t AS r GROUP BY {key} "
                f"ORDER BY {inside}{down}{limit}",
                kinds,
            )
        query = f"SELECT {listed} FROM t AS r ORDER BY {inside}{down}, r.id{limit}"
        if wrap == "subquery":
            query = f"SELECT * FROM ({query}) ORDER BY ALL"
        if wrap == "WITH":
            query = f"WITH q AS ({query}) SELECT * FROM q ORDER BY ALL"
        return Statement(query, kinds)

    def _unnamed_item(self) -> str:
        name = self._random.choice(["id", "i", "big", "dec", "dt", "s"])
        form = self._random.choice(
            ["CAST({0} AS VARCHAR)", "TRY_CAST({0} AS VARCHAR)", "{0}::VARCHAR", "{0}",
             "coalesce({0}, NULL)", "r.{0}", "st.x", "m['a']", "(SELECT max(u.{0}) FROM t u)",
             "row_number() OVER (ORDER BY {0}, id)", "-r.{1} AS {1}", "CAST({0} AS VARCHAR) AS {0}"]
        )  # fmt: skip
        return str(form.format(name, self._random.choice(["id", "i", "big"])))
