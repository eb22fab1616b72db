"""Draws tables and statements: the SQL, and its effect on the rows of the model.

A table has ``id`` (the key), ``p`` (small), ``x`` (a new value each time) and columns of any type,
also nested ones; a partition spec; a format version; properties. A statement is drawn for the
current state of the table: of rows, as a transaction, of columns, partitions, refs, properties, or
maintenance. Campaigns differ in how often they draw each: ``OWN`` beside other writers, ``OTHER``
for these writers, ``ALONE`` for a single writer, with everything drawn.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.campaigns.histories.model import (
    Cells,
    Part,
    Row,
    Rows,
    TableModel,
    Test,
    copied,
    deleted,
    inserted,
    key_of,
    merged,
    replaced,
    same,
    updated,
    value_at,
)
from tests.campaigns.histories.spelling import (
    KINDS,
    is_spelled,
    literal,
    sql_type,
    transform,
    values,
)
from tests.tables import read_table
from tests.writer.columns import Columns, primitive_paths
from tests.writer.model import key_form
from tests.writer.partition_values import apply

IDS = range(12)
PARTITIONS = (0, 1, 2)
MODES = ("merge-on-read", "merge-on-read", "copy-on-write")


def _weights(who: str) -> Mapping[str, float]:
    table = read_table(__file__, "weights.tsv")
    return {kind: float(often) for whose, kind, often in table if whose == who}


OWN, OTHER, ALONE = map(_weights, ("own", "other", "alone"))
_PROPERTIES = [(key, values.split()) for key, values in read_table(__file__, "properties.tsv")]


@dataclass
class Statement:
    """SQL, or a change by another writer, and its effect.

    ``refusals`` are texts of errors for a statement that does not fit the table. ``reads``: it
    reads rows of the table, whose files an expiry of another writer may have deleted.
    """

    kind: str
    texts: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()
    refusals: tuple[str, ...] = ()
    reads: bool = False
    many: bool = False  # it makes several commits
    run: Callable[[], Any] | None = None
    table: str = "t"
    # The snapshot that main has to be at afterwards, for a statement that only moves it.
    head: int | None = None
    # A table that it creates.
    makes: str | None = None
    columns: str = ""  # its effect on the columns: "replaced" or nothing
    appends: list[Cells] = field(default_factory=list)  # the rows, if it only adds rows

    @property
    def text(self) -> str:
        """The text that is printed."""
        return "; ".join(self.texts) or self.kind


class Shape:
    """The shape of a history's tables: version, columns, partitions and properties."""

    def __init__(self, chance: random.Random) -> None:
        self.version = chance.choice([1, 2, 2, 2, 3, 3, 3])
        columns = Columns(chance, self.version, KINDS)
        kinds = {"id": "long", "p": "int", "x": "int"}
        names = [*kinds, *(f"e{number}" for number in range(chance.randint(0, 3)))]
        drawn = {each: columns.field(each, first=True) | {"required": False} for each in names}
        self.fields = [each | {"type": kinds.get(n, each["type"])} for n, each in drawn.items()]
        self.spec: list[tuple[str, str]] = []
        if chance.random() < 0.35:
            self.spec = [("identity", "p")]
        elif chance.random() < 0.25 and (other := _transform(columns, self.fields)):
            self.spec = [other]
        modes = {each: chance.choice(MODES) for each in ("delete", "update", "merge")}
        level = chance.choice(["serializable", "serializable", "snapshot"])
        self.isolation = level
        properties = {"format-version": str(self.version)}
        properties |= {"commit.retry.min-wait-ms": "1", "commit.retry.max-wait-ms": "2"}
        if self.version > 1:
            properties |= {f"write.{key}.mode": mode for key, mode in modes.items()}
        properties |= {f"write.{key}.isolation-level": level for key in modes}
        properties["commit.manifest.min-count-to-merge"] = str(chance.choice([2, 3, 100]))
        if chance.random() < 0.4:
            properties["write.metadata.delete-after-commit.enabled"] = "true"
            properties["write.metadata.previous-versions-max"] = str(chance.choice([1, 1, 3]))
        if chance.random() < 0.2:
            properties["write.delete.granularity"] = "partition"
        self.properties = properties

    @property
    def by_p(self) -> bool:
        """True if p alone is the partition field."""
        return self.spec == [("identity", "p")]

    def create(self, name: str, *, replace: bool = False, text_x: bool = False) -> str:
        """The statement that creates a table."""
        columns = ", ".join(
            f"{each['name']} "
            f"{sql_type('string' if text_x and each['name'] == 'x' else each['type'])}"
            for each in self.fields
        )
        spec = ", ".join(transform(*each) for each in self.spec)
        told = ", ".join(f"'{key}' = '{value}'" for key, value in self.properties.items())
        return (
            f"CREATE {'OR REPLACE ' * replace}TABLE {name} ({columns})"
            f"{f' PARTITIONED BY ({spec})' * bool(spec)} TBLPROPERTIES ({told})"
        )


def _transform(columns: Columns, fields: list[dict[str, Any]]) -> tuple[str, str] | None:
    """A transform that statements can spell, and the name of its source column."""
    path, form = columns.transform(fields)
    if form == "void" or not is_spelled(path[-1]["type"]) or (form == "identity" and path[1:]):
        return None
    return form, ".".join(each["name"] for each in path)


class Drawing:
    """Draws statements on the tables of a model."""

    def __init__(
        self,
        chance: random.Random,
        shape: Shape,
        namespace: str,
        tables: dict[str, TableModel],
    ) -> None:
        self.chance, self.shape, self.namespace = chance, shape, namespace
        self._tables, self._last, self._columns = tables, 0, Columns(chance, shape.version, KINDS)
        # Whether a new column may have the name of a dropped one.
        self.reuses_names = False

    def draw(self, weights: Mapping[str, float], table: TableModel, other: Any = None) -> Statement:
        """A statement of one of these kinds, by weights; ``other`` has drawers for some kinds."""
        while True:
            (kind,) = self.chance.choices([*weights], [*weights.values()])
            drawer = self if hasattr(self, kind) else other
            found: Statement | None = getattr(drawer, kind)(table)
            if found is not None:
                return found

    # ------------------------------------------------------------------ values

    def _next(self) -> int:
        self._last += 1
        return self._last

    def value(self, table: TableModel, column: dict[str, Any]) -> Any:
        """A value of a column."""
        own = table.own_name(column)
        if own == "id":
            return self.chance.choice(IDS)
        if own == "p":
            return None if self.chance.random() < 0.05 else self.chance.choice(PARTITIONS)
        if own == "x":
            number = self._next()
            return f"v{number}" if column["type"] == "string" else number
        if not is_spelled(column["type"]):
            return None
        return self._any(column["type"], column.get("required"))

    def _any(self, type_: Any, required: Any = False) -> Any:
        if not required and self.chance.random() < 0.15:
            return None
        if isinstance(type_, str):
            return self.chance.choice(values(type_))
        match type_["type"]:
            case "struct":
                return {e["id"]: self._any(e["type"], e["required"]) for e in type_["fields"]}
            case "list":
                return [self._any(type_["element"]) for _ in range(self.chance.randrange(1, 4))]
            case _:
                keys = self.chance.sample(values(type_["key"]), self.chance.randint(1, 2))
                return [(key, self._any(type_["value"])) for key in keys]

    def cells(
        self, table: TableModel, *, ids: Iterable[int] | None = None, whole: bool = False
    ) -> list[Cells]:
        """New rows by field id; some leave columns out."""
        columns = [each for each in table.schema() if whole or is_spelled(each["type"])]
        if not whole and self.chance.random() < 0.3:
            columns = [
                each for each in columns
                if table.own_name(each) in ("id", "p", "x") or each.get("required")
                or self.chance.random() < 0.5
            ] or columns[:1]  # fmt: skip
        number = self.chance.randint(1, 4)
        rows = [
            {each["id"]: self.value(table, each) for each in columns}
            for _ in (range(number) if ids is None else ids)
        ]
        for row, each in zip(rows, ids or (), strict=False):
            row[table.ids["id"]] = each
        return rows

    def values(self, table: TableModel, rows: list[Cells]) -> str:
        """Rows as SQL."""
        return ", ".join(
            f"({', '.join(self.literal(table, each, row[each]) for each in row)})" for row in rows
        )

    def literal(self, table: TableModel, number: int, value: Any) -> str:
        """A value of a column as SQL."""
        return literal(table.field(number)["type"], value)

    def columns(self, table: TableModel, row: Cells) -> str:
        """The names of a row's columns."""
        return ", ".join(table.field(each)["name"] for each in row)

    def name(self, table: str, branch: str = "main") -> str:
        """A table in SQL."""
        return f"{self.namespace}.{table}" + ("" if branch == "main" else f".branch_{branch}")

    # ------------------------------------------------------------------ conditions

    def condition(
        self, table: TableModel, *, plain: bool = False, owner: str = ""
    ) -> tuple[str, Test]:
        """SQL, and a test whether it is true for a row; ``plain``: on numbers, usable on files."""
        chance = self.chance
        text, test = self._single(table, plain, owner)
        while not plain and chance.random() < 0.2:
            more, other = self._single(table, plain, owner)
            if chance.random() < 0.5:
                text, test = f"({text} AND {more})", _both(test, other)
            else:
                text, test = f"({text} OR {more})", _either(test, other)
        return text, test

    def _single(self, table: TableModel, plain: bool, owner: str) -> tuple[str, Test]:
        chance = self.chance
        paths = [path for path in primitive_paths(table.schema()) if is_spelled(path[-1]["type"])]
        own = [path for path in paths if table.own_name(path[0]) in ("id", "id", "p", "x")]
        numbers = [path for path in own if path[0]["type"] in ("int", "long")]
        if numbers and (plain or chance.random() < 0.6):
            path = chance.choice(numbers)
        elif paths:
            path = chance.choice(paths)
        else:
            column = chance.choice(table.schema())
            return f"{owner}{column['name']} IS NULL", lambda row: row.cells[column["id"]] is None
        last, name = path[-1], owner + ".".join(each["name"] for each in path)
        given: list[Any]
        if table.own_name(last) == "x" and last["type"] != "string":
            given = [chance.randint(0, self._last) for _ in range(3)]
        elif table.own_name(last) == "id":
            given = chance.sample(IDS, 3)
        elif table.own_name(last) == "p":
            given = [*PARTITIONS]
        else:
            given = chance.choices(values(last["type"]), k=3)
        wanted = [key_of(each) for each in given]
        texts = [str(each) if plain else literal(last["type"], each)
                 for each in given]  # fmt: skip

        def tested(test: Callable[[Any], bool]) -> Test:
            def known(row: Row) -> bool | None:
                found = value_at(row, path)
                return None if found is None else test(key_of(found))

            return known

        one, (low, high) = wanted[0], sorted(wanted[:2])
        span = [texts[wanted.index(each)] for each in (low, high)]
        forms: list[tuple[str, Test]] = [
            (f"{name} = {texts[0]}", tested(lambda value: value == one)),
            (f"{name} = {texts[0]}", tested(lambda value: value == one)),
            (f"{name} > {texts[0]}", tested(lambda value: value > one)),
            (f"{name} <= {texts[0]}", tested(lambda value: value <= one)),
            (f"{name} BETWEEN {span[0]} AND {span[1]}", tested(lambda v: low <= v <= high)),
            (f"{name} IN ({', '.join(texts)})", tested(lambda value: value in wanted)),
            (f"{name} IS NULL", lambda row: value_at(row, path) is None),
        ]
        if not plain and last["type"] in ("int", "long") and table.own_name(last):
            forms.append((f"{name} % 3 = 1", tested(lambda value: value[1] % 3 == 1)))
        if not plain and last["type"] == "string":
            start = chance.choice("abv")
            forms.append((f"{name} LIKE '{start}%'", tested(lambda v: v[1].startswith(start))))
        if not plain:
            forms += [
                (f"NOT ({name} = {texts[0]})", tested(lambda value: value != one)),
                (f"{name} IS DISTINCT FROM {texts[0]}",
                 lambda row: key_of(value_at(row, path)) != one),
                (f"{name} IS NOT NULL", lambda row: value_at(row, path) is not None),
            ]  # fmt: skip
        return chance.choice(forms)

    # ------------------------------------------------------------------ rows

    def _rows(
        self, kind: str, table: TableModel, branch: str, text: str, effect: Any, **more: Any
    ) -> Statement:
        """A statement that changes rows of a branch."""
        gone = ("no branch", "branch") if branch != "main" else ()
        return Statement(
            kind, (text,), (Part(table.name, effect, branch),),
            (*gone, *more.pop("refusals", ())), table=table.name, **more,
        )  # fmt: skip

    @property
    def _as_seen(self) -> bool:
        """True if a statement may change the rows that it saw, instead of the current ones."""
        return self.shape.isolation == "snapshot"

    def on_branch(self, table: TableModel) -> Statement | None:
        """Rows of a branch other than main."""
        branches = [each for each in table.rows if each != "main"]
        if not branches:
            return None
        kinds = [self.insert, self.insert, self.insert, self.delete]
        if self.shape.isolation != "snapshot":
            kinds += [self.update, self.merge]
        return self.chance.choice(kinds)(table, self.chance.choice(branches))

    def insert(self, table: TableModel, branch: str = "main") -> Statement | None:
        rows = self.cells(table)
        if not rows[0] or self._lacks(table, rows[0]):
            return None
        text = (
            f"INSERT INTO {self.name(table.name, branch)} ({self.columns(table, rows[0])}) "
            f"VALUES {self.values(table, rows)}"
        )
        return self._rows("insert", table, branch, text, inserted(rows), appends=rows)

    @staticmethod
    def _lacks(table: TableModel, row: Cells) -> bool:
        """True if a row lacks a value of a required column."""
        return any(each["required"] and each["id"] not in row for each in table.schema())

    def insert_select(self, table: TableModel) -> Statement | None:
        condition, test = self.condition(table)
        x, add = table.ids.get("x", -1), 1000 * self._next()
        is_number = x in table.by_id() and table.field(x)["type"] != "string"
        columns = table.schema()
        texts = [
            f"{each['name']} + {add}" if each["id"] == x and is_number else each["name"]
            for each in columns
        ]

        def change(row: Row) -> Cells:
            made = {each["id"]: value_at(row, [each]) for each in columns}
            if is_number and made[x] is not None:
                made[x] += add
            return made

        text = (
            f"INSERT INTO {self.name(table.name)} ({', '.join(each['name'] for each in columns)}) "
            f"SELECT {', '.join(texts)} FROM {self.name(table.name)} WHERE {condition}"
        )
        return self._rows(
            "insert select", table, "main", text, copied(test, change), reads=True,
            refusals=("out of range", "verflow", "Could not cast"),
        )  # fmt: skip

    def delete(self, table: TableModel, branch: str = "main") -> Statement:
        condition, test = self.condition(table)
        effect = deleted(
            test, as_seen=self._as_seen, vectors=self._as_seen and table.version > 2
        )  # fmt: skip
        text = f"DELETE FROM {self.name(table.name, branch)} WHERE {condition}"
        return self._rows("delete", table, branch, text, effect, reads=True)

    def truncate(self, table: TableModel) -> Statement:
        word = self.chance.choice(["TRUNCATE TABLE", "DELETE FROM"])
        effect = deleted(lambda row: True, as_seen=self._as_seen)
        return self._rows("truncate", table, "main", f"{word} {self.name(table.name)}", effect)

    def _assignment(self, table: TableModel, owner: str = "") -> tuple[str, Any]:
        """An assignment to a column: SQL, and the change of a row."""
        chance = self.chance
        columns = [each for each in table.schema() if table.own_name(each) != "id"]
        columns = [each for each in columns if is_spelled(each["type"])] or columns
        first = [each for each in columns if table.own_name(each)]
        column = chance.choice(first if first and chance.random() < 0.5 else columns)
        number, name, kind = column["id"], column["name"], column["type"]
        alike = [
            each for each in table.schema()
            if each["type"] == kind and isinstance(kind, str) and each["id"] != number
            and (each["required"] or not column["required"])
        ]  # fmt: skip
        drawn = chance.random()
        if alike and drawn < 0.2:
            other = chance.choice(alike)
            return f"{name} = {owner}{other['name']}", _set(number, _of_column(other))
        if kind == "string" and drawn < 0.4:
            return f"{name} = {owner}{name} || 'z'", _set(number, _and_z(column))
        if isinstance(kind, dict) and kind["type"] == "struct" and drawn < 0.6:
            inner = chance.choice(kind["fields"])
            if is_spelled(kind) and not any(each["required"] for each in kind["fields"]):
                value = self._any(inner["type"])
                text = f"{name}.{inner['name']} = {literal(inner['type'], value)}"
                return text, _set(number, _inside(column, inner["id"], value))
        if not is_spelled(kind):
            return f"{name} = {owner}{name}", _set(number, _of_column(column))
        value = self.value(table, column)
        return f"{name} = {self.literal(table, number, value)}", _set(number, lambda row: value)

    def update(self, table: TableModel, branch: str = "main") -> Statement:
        condition, test = self.condition(table)
        texts, changes = dict[str, str](), []
        for _ in range(self.chance.choice([1, 1, 2])):
            text, change = self._assignment(table)
            name = text.partition(" =")[0].partition(".")[0]
            if name not in texts:
                texts[name] = text
                changes.append(change)
        text = (
            f"UPDATE {self.name(table.name, branch)} SET {', '.join(texts.values())} "
            f"WHERE {condition}"
        )
        effect = updated(test, _all_of(changes), as_seen=self._as_seen)
        return self._rows("update", table, branch, text, effect, reads=True)

    def merge(self, table: TableModel, branch: str = "main") -> Statement | None:
        if "id" not in table.ids or not all(is_spelled(e["type"]) for e in table.schema()):
            return None
        chance, key = self.chance, table.ids["id"]
        wanted = sorted(chance.sample(IDS, chance.randint(1, 4)))
        rows = self.cells(table, ids=wanted, whole=True)
        source = {row[key]: row for row in rows}
        matched, missing, alone = list[Any](), list[Any](), list[Any]()
        clauses, id_ = [], table.field(key)["name"]

        def more(owner: str) -> tuple[str, Test | None]:
            if chance.random() < 0.6:
                return "", None
            text, test = self.condition(table, owner=owner)
            return f" AND {text}", test

        if chance.random() < 0.35:
            condition, test = more("t.")
            clauses.append(f"WHEN MATCHED{condition} THEN DELETE")
            matched.append((test, None))
        if chance.random() < 0.8 and (not matched or matched[-1][0] is not None):
            condition, test = more("t.")
            drawn, others = chance.random(), [e for e in table.schema() if e["id"] != key]
            if drawn < 0.2:
                text, change = "*", lambda row, given: dict(given)
            elif drawn < 0.75:
                column = table.field(table.ids["x"]) if drawn < 0.5 else chance.choice(others)
                text = f"{column['name']} = u.{column['name']}"
                change = _given(column["id"])
            else:
                text, plain = self._assignment(table, "t.")
                change = _ignoring(plain)
            clauses.append(f"WHEN MATCHED{condition} THEN UPDATE SET {text}")
            matched.append((test, change))
        if chance.random() < 0.7 or not clauses:
            condition, test = more("u.")
            kept = [
                each["id"] for each in table.schema()
                if each["required"] or table.own_name(each) or chance.random() < 0.7
            ]  # fmt: skip
            names = [table.field(each)["name"] for each in kept]
            how = f"({', '.join(names)}) VALUES ({', '.join(f'u.{each}' for each in names)})"
            if len(kept) == len(table.schema()) and chance.random() < 0.5:
                how = "*"
            clauses.append(f"WHEN NOT MATCHED{condition} THEN INSERT {how}")
            missing.append((test, kept))
        if chance.random() < 0.2:
            condition, test = self.condition(table, owner="t.")
            then, change = "DELETE", None
            if chance.random() < 0.5:
                text, change = self._assignment(table, "t.")
                then = f"UPDATE SET {text}"
            clauses.append(f"WHEN NOT MATCHED BY SOURCE AND {condition} THEN {then}")
            alone.append((test, change))
        on, test = more("t.") if chance.random() < 0.3 else ("", None)
        names = [table.field(each)["name"] for each in rows[0]]
        text = (
            f"MERGE INTO {self.name(table.name, branch)} t USING "
            f"(VALUES {self.values(table, rows)}) u({', '.join(names)}) "
            f"ON t.{id_} = u.{id_}{on} {' '.join(clauses)}"
        )
        effect = merged(key, source, test, matched, missing, alone, as_seen=self._as_seen)
        return self._rows("merge", table, branch, text, effect, reads=True)

    def overwrite(self, table: TableModel) -> Statement | None:
        chance, name, rows = self.chance, self.name(table.name), self.cells(table)
        if not rows[0] or self._lacks(table, rows[0]):
            return None
        whole = ("holds rows", "of another partitioning", "only some rows", "PARTITION")
        kind, effect, part = "overwrite", replaced(lambda row: True, rows), ""
        mode, spec = "static", table.spec()
        if spec and not table.respecced and chance.random() < 0.7:
            fixed = [path[0] for path, form in spec if form == "identity" and not path[1:]]
            fixed = [each for each in fixed if each["type"] in ("int", "long", "string")]
            if fixed and chance.random() < 0.4 and len(spec) == 1:
                column = fixed[0]
                value = self.value(table, column | {"required": True})
                if value is None:
                    return None
                part = f" PARTITION ({column['name']} = {value!r})"
                rows = [{**each, column["id"]: value} for each in rows]
                wanted = key_of(value)
                effect = replaced(lambda row: key_of(value_at(row, [column])) == wanted, rows)
                rows = [{k: v for k, v in each.items() if k != column["id"]} for each in rows]
                if not rows[0]:
                    return None
            else:
                kind, mode = "overwrite dynamic", "dynamic"
                found = {_partition(spec, Row(each)) for each in rows}
                effect = replaced(lambda row: _partition(spec, row) in found, rows)
        text = (
            f"INSERT OVERWRITE {name}{part} ({self.columns(table, rows[0])}) "
            f"VALUES {self.values(table, rows)}"
        )
        made = self._rows(kind, table, "main", text, effect, refusals=whole * (mode == "static"))
        made.texts = (f"SET partition_overwrite_mode = '{mode}'", *made.texts)
        return made

    def overwrite_select(self, table: TableModel) -> Statement:
        name, (condition, test) = self.name(table.name), self.condition(table)
        columns = table.schema()
        text = (
            f"INSERT OVERWRITE {name} SELECT {', '.join(each['name'] for each in columns)} "
            f"FROM {name} WHERE {condition}"
        )

        def effect(now: Rows, seen: Rows) -> Rows:
            return tuple(Row(dict(each.cells)) for each in seen if test(each) is True)

        made = self._rows("overwrite select", table, "main", text, effect, reads=True)
        made.texts = ("SET partition_overwrite_mode = 'static'", *made.texts)
        return made

    # ------------------------------------------------------------------ transactions

    def transaction(self, table: TableModel) -> Statement | None:
        """Two to four statements, and COMMIT; on two tables over REST."""
        chance, tables = self.chance, [table]
        if "u" in self._tables and chance.random() < 0.65:
            tables.append(self._tables["u"])
        only = chance.random() < 0.4
        kinds: list[Any] = [self.insert]
        kinds += [] if only else [self.delete, self.update, self.merge]
        drawn: list[Statement] = []
        for number in range(chance.randint(2, 4)):
            each = tables[number] if number < len(tables) else chance.choice(tables)
            made = chance.choice(kinds)(each)
            if made is not None:
                drawn.append(made)
        if len(drawn) < 2:
            return None
        return Statement(
            "transaction" if len(tables) == 1 else "transaction of two",
            ("BEGIN", *(text for each in drawn for text in each.texts), "COMMIT"),
            tuple(part for each in drawn for part in each.parts), reads=not only, table=table.name,
        )  # fmt: skip

    def create_as(self, table: TableModel) -> Statement | None:
        """A new table from rows that the statement reads."""
        name, (condition, test) = f"c{self._next()}", self.condition(table)
        columns = [each for each in table.schema() if table.own_name(each)]
        if not columns:
            return None
        told = f" TBLPROPERTIES ('format-version' = '{self.shape.version}')"
        sql = (
            f"CREATE TABLE {self.name(name)}{told} AS SELECT "
            f"{', '.join(each['name'] for each in columns)} FROM {self.name(table.name)} "
            f"WHERE {condition}"
        )

        def effect(now: Rows, seen: Rows) -> Rows:
            return tuple(
                Row({n + 1: value_at(row, [each]) for n, each in enumerate(columns)})
                for row in seen if test(row) is True
            )  # fmt: skip

        return Statement(
            "create as", (sql,), (Part(name, effect),), ("exists", "created", "already"),
            reads=True, table=name, makes=name,
        )  # fmt: skip

    # ------------------------------------------------------------------ maintenance

    def _call(self, kind: str, table: TableModel, more: str = "", **given: Any) -> Statement:
        """A procedure, which changes no row."""
        text = f"CALL system.{kind}(table => '{self.name(table.name)}'{more})"
        return Statement(kind, (text,), (Part(table.name, same),), table=table.name, **given)

    def compaction(self, table: TableModel) -> Statement:
        chance = self.chance
        options = {"rewrite-all": "true"} if chance.random() < 0.7 else {"min-input-files": "2"}
        if chance.random() < 0.5:
            options["delete-file-threshold"] = "1"
        if chance.random() < 0.4:
            options["remove-dangling-deletes"] = "true"
        if chance.random() < 0.25:
            options["use-starting-sequence-number"] = "false"
        partial = chance.random() < 0.3
        if partial:
            options |= {"partial-progress.enabled": "true", "partial-progress.max-commits": "3"}
            options["max-file-group-size-bytes"] = str(chance.choice([1, 2000]))
        more = ""
        if chance.random() < 0.45 and "id" in table.ids:
            more += f", where => '{self.condition(table, plain=True)[0]}'"
        if chance.random() < 0.2:
            path = chance.choice([*primitive_paths(table.schema())] or [[table.schema()[0]]])
            name = ".".join(each["name"] for each in path)
            more += f", strategy => 'sort', sort_order => '{name} DESC NULLS LAST'"
        told = ", ".join(f"'{key}', '{value}'" for key, value in options.items())
        return self._call(
            "rewrite_data_files", table, f"{more}, options => map({told})",
            refusals=("commits of the rewrite failed",), reads=True,
            many=partial or "remove-dangling-deletes" in options,
        )  # fmt: skip

    def rewrite_manifests(self, table: TableModel) -> Statement:
        return self._call("rewrite_manifests", table)

    def rewrite_deletes(self, table: TableModel) -> Statement:
        return self._call(
            "rewrite_position_delete_files", table, ", options => map('rewrite-all', 'true')",
            refusals=("new deletes are vectors",), reads=True,
        )  # fmt: skip

    def convert(self, table: TableModel) -> Statement:
        return self._call("convert_equality_deletes", table, reads=True)

    def expire(self, table: TableModel) -> Statement:
        more = (
            f", older_than => now() + INTERVAL 1 HOUR, retain_last => {self.chance.randint(1, 3)}"
        )
        if self.chance.random() < 0.3:
            more += ", clean_expired_metadata => true"
        made = self._call("expire_snapshots", table, more)
        made.kind, made.parts = "expire", ()
        return made

    def orphans(self, table: TableModel) -> Statement:
        made = self._call("remove_orphan_files", table, reads=True)
        made.kind, made.parts = "orphans", ()
        return made

    def maintain(self, table: TableModel) -> Statement:
        """A run of maintenance, in the form that ``run_texts`` accepts."""
        made = self._call("maintain", table, reads=True, many=True)
        made.texts = (f"maintain {self.name(table.name)}",)
        return made

    def copy(self, table: TableModel, place: Path) -> Statement:
        """A copy of the table in a folder, or of what is new since the last copy."""
        since = self.chance.choice(["", ", since => 'latest'"])
        missing = ("leave SINCE out", "no table", "no metadata")
        made = self._call("copy_table", table, f", location => '{place}'{since}", reads=True)
        made.kind, made.parts, made.refusals = "copy", (), missing
        return made

    # ------------------------------------------------------------------ history

    def _snapshots(self, table: TableModel) -> list[int]:
        """The snapshots whose rows are known, the newest first."""
        return [each for each in [*table.parents()][::-1] if table.snapshots.get(each) is not None]

    def _of_history(
        self, kind: str, procedure: str, table: TableModel, more: Any, *refusals: str, **given: Any
    ) -> Statement:
        """A procedure that moves branches."""
        text = f"CALL system.{procedure}('{self.name(table.name)}', {more})"
        return Statement(kind, (text,), refusals=refusals, table=table.name, **given)

    def _alter(self, kind: str, table: TableModel, text: str, *refusals: str) -> Statement:
        """A statement that changes no row."""
        sql = f"ALTER TABLE {self.name(table.name)} {text}"
        return Statement(kind, (sql,), refusals=refusals, table=table.name)

    def move_main(self, table: TableModel) -> Statement | None:
        """Back to an ancestor of main."""
        parents, found = table.parents(), list[int]()
        current = table.heads.get("main")
        while current is not None and (current := parents.get(current)) in parents:
            found += [current] * (table.snapshots.get(current) is not None)
        if not found:
            return None
        chosen = found[min(self.chance.choice([0, 0, 1, 2]), len(found) - 1)]
        kind = "rollback_to_snapshot"
        return self._of_history(kind, kind, table, chosen, "ancestor", "snapshot", head=chosen)

    def branch(self, table: TableModel) -> Statement:
        """Create or drop the branch dev, or fast-forward main to it."""
        there = "dev" in table.rows
        verb = "CREATE OR REPLACE" if not there or self.chance.random() < 0.4 else "DROP"
        refusals = "branch", "ancestor", "snapshots of its own"
        if verb == "DROP" and self.chance.random() < 0.3:
            return self._of_history("branch", "fast_forward", table, "'main', 'dev'", *refusals)
        return self._alter("branch", table, f"{verb} BRANCH dev", *refusals)

    def ref(self, table: TableModel) -> Statement | None:
        """Create, drop or move a branch or a tag."""
        assert table.document is not None
        chance, found = self.chance, self._snapshots(table)
        refs = [(name, each["type"]) for name, each in table.document["refs"].items()
                if name != "main"]  # fmt: skip
        if not found:
            return None
        verb = chance.choice(["CREATE", "CREATE", "REPLACE", "DROP"])
        at = f" AS OF VERSION {chance.choice(found)}"
        if verb == "CREATE":
            if len(refs) > 4:
                return None
            name, kind = f"r{self._next()}", chance.choice(["branch", "branch", "tag"])
            at = (at if chance.random() < 0.4 else "") + chance.choice(["", "", " RETAIN 30 DAYS"])
            if table.heads.get("main") not in found:
                return None
        elif not refs:
            return None
        else:
            name, kind = chance.choice(refs)
            at = at if verb == "REPLACE" else ""
        return self._alter("ref", table, f"{verb} {kind.upper()} {name}{at}", "branch", "ancestor")

    def fast_forward(self, table: TableModel) -> Statement | None:
        if len(table.rows) < 2:
            return None
        behind, ahead = self.chance.sample([*table.rows], 2)
        refusals, both = ("ancestor", "fast-forward", "snapshot"), f"'{behind}', '{ahead}'"
        return self._of_history("fast forward", "fast_forward", table, both, *refusals)

    def cherrypick(self, table: TableModel) -> Statement | None:
        """Apply the rows of an INSERT into a branch to main as well."""
        known = table.parents()
        found = [each for each in table.appended if each in known]
        if not found:
            return None
        chosen = self.chance.choice(found)
        parts = (Part(table.name, inserted(table.appended[chosen])),)
        return self._of_history(
            "cherrypick", "cherrypick_snapshot", table, chosen, "ancestor", "already", parts=parts
        )

    # ------------------------------------------------------------------ shape

    def change_columns(self, table: TableModel) -> Statement | None:
        """Add, drop, rename or move a column, or change its type."""
        fields, columns = copy.deepcopy(table.schema()), self._columns
        columns.version = table.version
        columns._next_id = max(columns._next_id, self._next())
        own = {table.ids[each] for each in ("id", "p", "x") if each in table.ids}
        sources = table.sources()
        if not self.reuses_names:
            columns._gone_names.clear()  # another writer's statement may mean a dropped column
        change = columns.change(fields, kept=own | sources, sources=sources, structs_alone=True)
        if change is None or len([*primitive_paths(fields)]) > 14:
            return None
        name = ".".join((*change.path, change.name))
        at = f" AFTER {change.after}" if change.after else " FIRST"
        match change.kind:
            case "add":
                given: Any = change.detail
                default = ""
                if "write-default" in given:
                    text = repr(given["write-default"])
                    default = f" DEFAULT {text.lower() if text in ('True', 'False') else text}"
                elif self.chance.random() < 0.6:
                    at = ""
                text = f"ADD COLUMN {name} {sql_type(given['type'])}{default}{at}"
            case "drop":
                text = f"DROP COLUMN {name}"
            case "rename":
                if table.own_name(table.at_path(change.path, change.name)) in ("id", "p") or (
                    table.at_path(change.path, change.name)["id"] in sources
                ):
                    return None
                text = f"RENAME COLUMN {name} TO {change.detail}"
            case "move":
                text = f"ALTER COLUMN {name}{at}"
                if change.after == change.name:
                    return None
            case "widen":
                text = f"ALTER COLUMN {name} TYPE {sql_type(change.detail)}"
            case _:
                text = f"ALTER COLUMN {name} DROP NOT NULL"
        refusals = "no column", "not found", "there is", "exists", "column"
        return self._alter("columns", table, text, *refusals)

    def change_partitions(self, table: TableModel) -> Statement | None:
        spec = [(form, ".".join(e["name"] for e in path)) for path, form in table.spec()
                if form != "void"]  # fmt: skip
        drawn = _transform(self._columns, table.schema())
        verb = self.chance.choice(["ADD", "DROP", "REPLACE"] if spec else ["ADD"])
        if (verb != "DROP" and drawn is None) or (verb == "ADD" and len(spec) > 2):
            return None
        text = transform(*(drawn or ("", ""))) if verb == "ADD" else (
            transform(*self.chance.choice(spec))
        )  # fmt: skip
        if verb == "REPLACE" and drawn is not None:
            text += f" WITH {transform(*drawn)}"
        text = f"{verb} PARTITION FIELD {text}"
        return self._alter("partitioning", table, text, "partition field", "partition")

    def replace(self, table: TableModel) -> Statement:
        text_x = self.chance.random() < 0.3
        sql = self.shape.create(self.name(table.name), replace=True, text_x=text_x)
        if table.version > self.shape.version:
            sql = sql.replace(f"'format-version' = '{self.shape.version}'",
                              f"'format-version' = '{table.version}'")  # fmt: skip
        stays = ("stays in a table of format version 1", "has the name of a column")
        return Statement(
            "replace table", (sql,), (), stays, table=table.name, columns="replaced"
        )  # fmt: skip

    def upgrade(self, table: TableModel) -> Statement | None:
        if table.version > 2 or len(table.rows) > 1:
            return None
        text = f"SET TBLPROPERTIES ('format-version' = '{table.version + 1}')"
        return self._alter("upgrade", table, text, "format version")

    def set_property(self, table: TableModel) -> Statement:
        key, known = self.chance.choice(_PROPERTIES)
        text = f"SET TBLPROPERTIES ('{key}' = '{self.chance.choice(known)}')"
        if self.chance.random() < 0.1:
            text = f"UNSET TBLPROPERTIES IF EXISTS ('{key}')"
        return self._alter("properties", table, text, "format version")

    def write_order(self, table: TableModel) -> Statement | None:
        chance = self.chance
        path = chance.choice([*primitive_paths(table.schema())] or [[]])
        name = ".".join(each["name"] for each in path)
        order = f"{name} {chance.choice(['ASC', 'DESC'])} NULLS {chance.choice(['FIRST', 'LAST'])}"
        text = chance.choice([
            f"WRITE ORDERED BY {order}", f"WRITE LOCALLY ORDERED BY {order}", "WRITE UNORDERED",
            f"WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY {order}",
        ])  # fmt: skip
        return self._alter("write order", table, text) if path else None


# ------------------------------------------------------------------ changes of values


def _set(number: int, value: Callable[[Row], Any]) -> Callable[[Row], Cells]:
    return lambda row: {**row.cells, number: value(row)}


def _all_of(changes: list[Callable[[Row], Cells]]) -> Callable[[Row], Cells]:
    """Several assignments, all computed from the old row."""

    def change(row: Row) -> Cells:
        made = dict(row.cells)
        for each in changes:
            made |= {k: v for k, v in each(row).items() if v is not row.cells.get(k, _ABSENT)}
        return made

    return change


_ABSENT = object()


def _of_column(column: dict[str, Any]) -> Callable[[Row], Any]:
    return lambda row: value_at(row, [column])


def _and_z(column: dict[str, Any]) -> Callable[[Row], Any]:
    def value(row: Row) -> Any:
        found = value_at(row, [column])
        return None if found is None else f"{found}z"

    return value


def _inside(column: dict[str, Any], number: int, value: Any) -> Callable[[Row], Any]:
    """A struct with another value in it; a NULL struct becomes one of NULLs."""

    def made(row: Row) -> Any:
        found = value_at(row, [column]) or {each["id"]: None for each in column["type"]["fields"]}
        return {**found, number: value}

    return made


def _given(number: int) -> Callable[[Row, Cells], Cells]:
    return lambda row, given: {**row.cells, number: given[number]}


def _ignoring(change: Callable[[Row], Cells]) -> Callable[[Row, Cells], Cells]:
    return lambda row, given: change(row)


def _both(one: Test, other: Test) -> Test:
    def test(row: Row) -> bool | None:
        found = one(row), other(row)
        return False if False in found else None if None in found else True

    return test


def _either(one: Test, other: Test) -> Test:
    def test(row: Row) -> bool | None:
        found = one(row), other(row)
        return True if True in found else None if None in found else False

    return test


def _partition(spec: list[tuple[list[Any], str]], row: Row) -> tuple[Any, ...]:
    """The partition of a row in a spec."""
    found = []
    for path, form in spec:
        value = value_at(row, path)
        found.append(key_form(None, apply(form, path[-1]["type"], value)))
    return tuple(found)
