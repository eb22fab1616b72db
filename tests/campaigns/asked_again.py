"""Run queries five times, with other statements in between: caches must not change any row.

    python tests/campaigns asked_again [--histories 334] [--first 0] [--length 150]

A world has two schemas of three tables each, with the same names and other rows, in a folder of
its own. Its queries are run in rounds, each time in another order. Between the rounds this session
and another one commit, drop, recreate and compact tables, and time zone, schema, temporary views,
macros, variables and the values of parameters change. Every answer is compared with DuckDB's over
the same rows, and the first and last of each query with a session whose caches are off. Ends with
code 1 if rows differ; prints the number of queries and events.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import icesql
from tests.campaigns.histories.catalogs import Warehouse
from tests.campaigns.histories.command import run, world
from tests.campaigns.histories.drawing import Drawing, Shape
from tests.campaigns.histories.judge import run_texts
from tests.campaigns.histories.model import TableModel
from tests.campaigns.random_conditions import KINDS, SQL_TYPES, ZONES, Texts, Values
from tests.tables import read_table

TIMES = 5
SCHEMAS = ("one", "two")
TABLES = ("t", "u", "p")
FILES = 5
COLUMNS = ", ".join(f"{name} {kind}" for name, kind in SQL_TYPES.items())
DEFINITION = f"({COLUMNS}, o STRUCT(f DOUBLE, s VARCHAR))"
# Whether the engine evaluates a value outside of a function's domain depends on its plan, and so on
# its estimates of row counts.
RAISED = ["raised"]
# How often row statements are drawn; DuckDB runs the same texts.
ROWS = {"insert": 3, "insert_select": 1, "delete": 2, "update": 3, "merge": 2, "truncate": 0.1}
EVENTS = read_table(__file__, "asked_again.tsv")
FIRST = (
    "USE one", "SET VARIABLE low = 5", "CREATE OR REPLACE TEMP MACRO m(x) AS x + 1",
    "CREATE OR REPLACE TEMP VIEW v AS SELECT i, k, s FROM one.t WHERE k > 2",
)  # fmt: skip
# The layouts of the tables.
LAYOUTS = {"t": "", "u": " PARTITIONED BY (bucket(3, i))", "p": " PARTITIONED BY (k, w)"}


@dataclass
class Query:
    """A text, and a function that draws the values of its parameters each time."""

    sql: str
    values: Callable[[], list[Any]] | None = None


def exact(value: Any, kind: str) -> str:
    """A value in SQL, with exactly this type."""
    if value is None:
        return "NULL"
    text = str(value).replace("'", "''")
    return f"CAST('{text}' AS {kind})"


def alike(rows: list[Any]) -> list[str]:
    """Rows in a fixed order; instants in one zone, and -0.0 as 0.0."""

    def plain(value: Any) -> Any:
        match value:
            case list() | tuple():
                return [plain(each) for each in value]
            case dict():
                return {key: plain(each) for key, each in value.items()}
            case datetime() if value.tzinfo is not None:
                return value.astimezone(UTC).isoformat()
            case float():
                return value + 0.0
            case _:
                return value

    return sorted(repr(plain(row)) for row in rows)


class World:
    """The tables, the sessions that read and write them, and DuckDB's own tables."""

    def __init__(self, folder: Path, seed: int) -> None:
        import duckdb

        self.chance, self.found, self.wrong = random.Random(seed), Counter[str](), list[str]()
        self.warehouse = Warehouse("sqlite" if seed % 3 else "folder", folder)
        given = self.warehouse.arguments() | {"settings": {"threads": "1"}}
        self.asking, self.plain, self.other = (icesql.connect(**given) for _ in range(3))
        self.plain.execute("SET caches = off")
        self.duckdb = duckdb.connect(config={"threads": 1})
        self.duckdb.execute("SET TimeZone = 'UTC'")
        self.maker = Values(self.chance)
        self.known: dict[str, list[Any]] = {name: [] for name in KINDS}
        self.texts = Texts(self.chance, self.known)
        for schema in SCHEMAS:
            for one in (self.asking, self.duckdb):
                one.execute(f"CREATE SCHEMA {schema}")
            for table in TABLES:
                self.make(schema, table)
        for sql in FIRST:
            for one in (self.asking, self.plain, self.duckdb):
                one.execute(sql)

    def close(self) -> None:
        for each in (self.asking, self.plain, self.other, self.warehouse):
            each.close()
        self.duckdb.close()

    # ------------------------------------------------------------ changes

    def make(self, schema: str, table: str) -> None:
        self.asking.execute(f"CREATE TABLE {schema}.{table} {DEFINITION}{LAYOUTS[table]}")
        self.duckdb.execute(f"CREATE OR REPLACE TABLE {schema}.{table} {DEFINITION}")
        for _ in range(FILES):
            sql = self.insertion(f"{schema}.{table}", table == "p")
            self.asking.execute(sql)
            self.duckdb.execute(sql)

    def insertion(self, name: str, constant: bool) -> str:
        rows = self.maker.file(constant)[: self.chance.randint(1, 6)]
        written = []
        for row in rows:
            values = [exact(row[each], SQL_TYPES[each]) for each in KINDS]
            inner = f"{{'f': {exact(row['f'], 'DOUBLE')}, 's': {exact(row['s'], 'VARCHAR')}}}"
            written.append(f"({', '.join(values)}, {self.chance.choice((inner, inner, 'NULL'))})")
            for each, known in self.known.items():
                known.append(row[each])
        return f"INSERT INTO {name} ({', '.join(KINDS)}, o) VALUES {', '.join(written)}"

    def change_rows(self, schema: str, table: str, by: Any) -> None:
        """Run a row statement, in DuckDB as well if it has such a statement."""
        import duckdb

        model, found = TableModel(table), self.warehouse.document(schema, table)
        assert found is not None
        model.place, model.document = found
        draw = Drawing(self.chance, Shape(self.chance), schema, {table: model})
        (sql,) = draw.draw(ROWS, model).texts
        self.duckdb.begin()
        try:
            self.duckdb.execute(sql)
            by.execute(sql)
        except duckdb.FatalException:
            raise
        except (duckdb.Error, icesql.NotSupportedError):
            self.duckdb.rollback()
        else:
            self.duckdb.commit()

    def event(self) -> None:
        """Do something between two statements."""
        pick = self.chance
        self.found["events"] += 1
        schema = self.schema if pick.random() < 0.7 else pick.choice(SCHEMAS)
        table, by = pick.choice(TABLES), pick.choice((self.asking, self.other))
        given = {
            "schema": schema, "name": f"{schema}.{table}", "other": pick.choice(TABLES),
            "other_schema": pick.choice(SCHEMAS), "zone": pick.choice(ZONES),
            "number": pick.choice((0, 3, 5, 100, pick.randint(-50, 50))),
            "reader": pick.choice(("auto", "arrow")), "made": self.found["events"],
        }  # fmt: skip
        ((_, who, texts),) = pick.choices(EVENTS, [float(often) for often, *_ in EVENTS])
        if who == "rows":
            self.change_rows(schema, table, by)
            return
        if "{insertion}" in texts:
            given["insertion"] = self.insertion(given["name"], table == "p")
        sessions = {
            "everywhere": (self.asking, self.plain, self.duckdb), "both": (by, self.duckdb),
            "icesql": (by,), "asking": (self.asking,),
        }  # fmt: skip
        for text in texts.format(**given).split("; "):
            if text == "ASK":
                for query in self.queries[:3]:
                    self.ask_one(query)
                continue
            if text == "ANEW":
                self.make(schema, table)
                continue
            try:
                for each in sessions[who]:
                    run_texts(each, (text,))
            except icesql.NotSupportedError:
                return

    @property
    def schema(self) -> str:
        """The current schema of every session."""
        return str(self.duckdb.execute("SELECT current_schema()").fetchone()[0])

    # ------------------------------------------------------------ queries

    def query(self) -> Query:
        pick, ask = self.chance, self.texts.text
        if pick.random() < 0.75:
            return Query(ask("query"))
        name, x, key = ask("table"), ask("x"), ask("key")
        column, text = pick.choice("ilk"), pick.choice("sw")
        one = f"SELECT i, {x} FROM {name} WHERE {column} {pick.choice(('=', '>', '<='))} ?"
        two = f"SELECT {key}, count(*) FROM {name} WHERE {text} >= ? AND k < ? GROUP BY {key}"
        return pick.choice((
            Query(one, lambda: [self.value(column, 3)]),
            Query(two, lambda: [self.value(text, "ab"), self.value("k", 9)]),
            Query(f"SELECT i, s FROM {name} WHERE {text} = ?", lambda: [self.value(text, "a")]),
        ))  # fmt: skip

    def value(self, column: str, default: Any) -> Any:
        found = self.chance.choice(self.known[column])
        return default if found is None else found

    def ask(self, count: int) -> None:
        """Run ``count`` queries, each five times."""
        self.queries = [self.query() for _ in range(count)]
        self.found["questions"] += count
        for turn in range(TIMES):
            order = list(self.queries)
            if turn % 2:
                order.reverse()
            elif turn:
                self.chance.shuffle(order)
            for place, query in enumerate(order):
                if self.chance.random() < 0.06:
                    self.event()
                # Also repeated at once, which uses the caches immediately.
                for _ in range(TIMES if turn == 2 and place % 4 == 0 else 1):
                    self.ask_one(query, plain=turn in (0, TIMES - 1))

    def ask_one(self, query: Query, *, plain: bool = False) -> None:
        import duckdb

        values = None if query.values is None else query.values()
        self.found["asked"] += 1
        rows = self.rows(self.asking, query.sql, values)
        try:
            expected = alike(self.duckdb.execute(query.sql, values or []).fetchall())
        except duckdb.FatalException:
            raise
        except duckdb.Error:
            expected = None
        if rows in (None, RAISED) and expected is not None:
            self.found["refused"] += 1
        elif rows is not None and expected is not None:
            self.found["compared"] += 1
            if rows != expected:
                self.differs(query, values, rows, expected, "DuckDB")
        if plain or (rows is not None and rows != expected):
            without = self.rows(self.plain, query.sql, values)
            if without != rows and RAISED in (without, rows):
                self.found["raised"] += 1
            elif without != rows:
                self.differs(query, values, rows, without, "without caches")

    def differs(
        self, query: Query, values: Any, rows: Any, other: list[str] | None, whose: str
    ) -> None:
        few = [None if each is None else each[:6] for each in (rows, other)]
        (zone,) = self.duckdb.execute("SELECT current_setting('TimeZone')").fetchone()
        text = f"{query.sql} {values or ''} ({self.schema}, {zone})"
        self.wrong.append(f"{text}:\n  {few[0]}\n  {whose}: {few[1]}")

    @staticmethod
    def rows(connection: Any, sql: str, values: Any) -> list[str] | None:
        """The rows; None if the query is refused, RAISED for a value out of range."""
        try:
            return alike(connection.execute(sql, values).fetchall())
        except icesql.DataError:
            return RAISED
        except icesql.Error:
            return None


main = partial(run, partial(world, World), histories=334, length=150)
