"""Random statements, each with what it does to the rows of the model."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.campaigns.histories.model import (
    Part,
    Row,
    Rows,
    TableModel,
    Test,
    copied,
    deleted,
    inserted,
    merged,
    replaced,
    same,
    updated,
)

IDS = range(12)
PARTITIONS = (0, 1, 2)


@dataclass
class Statement:
    """SQL, or something of another writer, and what it does.

    ``refusals`` are texts of errors that say that the statement does not fit the table. ``reads``
    says that it reads rows of the table, whose files another's expiry may have deleted.
    """

    kind: str
    texts: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()
    refusals: tuple[str, ...] = ()
    reads: bool = False
    many: bool = False  # it makes several commits
    run: Callable[[], Any] | None = None
    table: str = "t"
    # Where main has to be afterwards, for what only moves it.
    head: int | None = None
    # A table that it makes.
    makes: str | None = None
    columns: str = ""  # what it makes of the columns: "replaced" or nothing

    @property
    def text(self) -> str:
        """As it is told."""
        return "; ".join(self.texts) or self.kind


@dataclass
class Shape:
    """What a history's tables are like."""

    version: int
    partitioned: bool
    modes: dict[str, str]
    isolation: dict[str, str]
    properties: dict[str, str]

    @classmethod
    def drawn(cls, chance: random.Random) -> Shape:
        """A random one."""
        version = chance.choice([1, 2, 2, 2, 3, 3, 3])
        modes = {
            each: chance.choice(["merge-on-read", "merge-on-read", "copy-on-write"])
            for each in ("delete", "update", "merge")
        }
        level = chance.choice(["serializable", "serializable", "snapshot"])
        isolation = dict.fromkeys(modes, level)
        properties = {"format-version": str(version)}
        properties |= {"commit.retry.min-wait-ms": "1", "commit.retry.max-wait-ms": "2"}
        if version > 1:
            properties |= {f"write.{key}.mode": mode for key, mode in modes.items()}
        else:
            modes = dict.fromkeys(modes, "copy-on-write")
        properties |= {f"write.{key}.isolation-level": own for key, own in isolation.items()}
        least = chance.choice([2, 3, 100])
        properties["commit.manifest.min-count-to-merge"] = str(least)
        if chance.random() < 0.4:
            properties["write.metadata.delete-after-commit.enabled"] = "true"
            properties["write.metadata.previous-versions-max"] = str(chance.choice([1, 1, 3]))
        if chance.random() < 0.2:
            properties["write.delete.granularity"] = "partition"
        return cls(version, chance.random() < 0.4, modes, isolation, properties)

    def create(self, name: str, *, replace: bool = False, text_x: bool = False) -> str:
        """The statement that makes a table."""
        told = ", ".join(f"'{key}' = '{value}'" for key, value in self.properties.items())
        return (
            f"CREATE {'OR REPLACE ' * replace}TABLE {name} (id BIGINT, p INT, "
            f"x {'VARCHAR' if text_x else 'INT'})"
            f"{' PARTITIONED BY (p)' * self.partitioned} TBLPROPERTIES ({told})"
        )


class Drawing:
    """Draws statements on the tables of a model."""

    def __init__(
        self, chance: random.Random, shape: Shape, namespace: str, tables: dict[str, TableModel]
    ) -> None:
        self._chance, self.shape, self.namespace = chance, shape, namespace
        self._tables = tables
        self._last = 0

    # ------------------------------------------------------------------ values

    def _next(self) -> int:
        self._last += 1
        return self._last

    def x_of(self, table: TableModel, number: int) -> Any:
        """A value of the column x of its type now."""
        return f"v{number}" if table.type_of("x") == "string" else number

    def cells(self, table: TableModel, *, ids: Iterable[int] | None = None) -> list[dict[int, Any]]:
        """New rows by field id."""
        own, chance = table.ids, self._chance
        chosen = [*ids] if ids is not None else chance.choices(IDS, k=chance.randint(1, 4))
        found = []
        for each in chosen:
            p = None if chance.random() < 0.05 else chance.choice(PARTITIONS)
            found.append({own["id"]: each, own["p"]: p, own["x"]: self.x_of(table, self._next())})
        return found

    def condition(self, table: TableModel, *, pushed: bool = False) -> tuple[str, Test]:
        """SQL, and whether it is true for a row; ``pushed``, one that says something of files."""
        names, ids, chance = table.names(), table.ids, self._chance
        number, p = chance.choice(IDS), chance.choice(PARTITIONS)
        id_, p_, x_ = ids["id"], ids["p"], ids["x"]
        some = sorted(chance.sample(IDS, 3))
        found: list[tuple[str, Test]] = [
            (f"{names['id']} = {number}", lambda row: row.cells.get(id_) == number),
            (f"{names['id']} = {number}", lambda row: row.cells.get(id_) == number),
            (f"{names['id']} < {number}", _number(id_, lambda value: value < number)),
            (
                f"{names['id']} IN ({', '.join(map(str, some))})",
                lambda row: row.cells.get(id_) in some,
            ),
            (f"{names['id']} % 3 = {number % 3}", _number(id_, lambda v: v % 3 == number % 3)),
            (f"{names['p']} = {p}", lambda row: row.cells.get(p_) == p),
            (f"{names['p']} IS NULL", lambda row: row.cells.get(p_) is None),
        ]
        if "x" in names and table.type_of("x") != "string":
            wanted = chance.randint(0, self._last)
            found.append((f"{names['x']} > {wanted}", _number(x_, lambda value: value > wanted)))
            found.append((f"{names['x']} % 2 = 1", _number(x_, lambda value: value % 2 == 1)))
        return chance.choice([each for each in found if not pushed or "%" not in each[0]])

    def values(self, table: TableModel, cells: list[dict[int, Any]]) -> str:
        """Rows as SQL."""
        order = [table.ids[each] for each in ("id", "p", "x")]
        return ", ".join(f"({', '.join(_literal(row[each]) for each in order)})" for row in cells)

    def columns(self, table: TableModel) -> str:
        """The names of the first columns."""
        names = table.names()
        return ", ".join(names[each] for each in ("id", "p", "x"))

    def name(self, table: str, branch: str = "main") -> str:
        """A table in SQL."""
        return f"{self.namespace}.{table}" + ("" if branch == "main" else f".branch_{branch}")

    def _as_seen(self, command: str) -> bool:
        """Whether a statement may change what it saw, and not what is there by now."""
        return self.shape.isolation[command] == "snapshot"

    # ------------------------------------------------------------------ rows

    def insert(self, table: TableModel, branch: str = "main") -> Statement:
        cells = self.cells(table)
        text = (
            f"INSERT INTO {self.name(table.name, branch)} ({self.columns(table)}) "
            f"VALUES {self.values(table, cells)}"
        )
        gone = ("no branch", "branch") if branch != "main" else ()
        return Statement(
            "insert", (text,), (Part(table.name, inserted(cells), branch),), gone, table=table.name
        )

    def insert_select(self, table: TableModel) -> Statement:
        text, test = self.condition(table)
        x, add, names = table.ids["x"], 1000 * self._next(), table.names()
        if table.type_of("x") == "string":
            return self.insert(table)
        sql = (
            f"INSERT INTO {self.name(table.name)} ({self.columns(table)}) SELECT {names['id']}, "
            f"{names['p']}, {names['x']} + {add} FROM {self.name(table.name)} WHERE {text}"
        )
        kept = [*table.ids.values()]

        def change(row: Row) -> dict[int, Any]:
            made = {each: row.cells.get(each) for each in kept}
            if made[x] is not None:
                made[x] += add
            return made

        return Statement(
            "insert select", (sql,), (Part(table.name, copied(test, change)),), reads=True,
            table=table.name,
        )  # fmt: skip

    def delete(self, table: TableModel, branch: str = "main") -> Statement:
        text, test = self.condition(table)
        effect = deleted(
            test,
            as_seen=self._as_seen("delete"),
            vectors=self._as_seen("delete") and table.version > 2,
        )
        sql = f"DELETE FROM {self.name(table.name, branch)} WHERE {text}"
        gone = ("branch",) if branch != "main" else ()
        return Statement(
            "delete", (sql,), (Part(table.name, effect, branch),), gone, reads=True,
            table=table.name,
        )  # fmt: skip

    def truncate(self, table: TableModel) -> Statement:
        as_seen = self._as_seen("delete")
        effect = deleted(lambda row: True, as_seen=as_seen)
        sql = f"TRUNCATE TABLE {self.name(table.name)}"
        if self._chance.random() < 0.5:
            sql = f"DELETE FROM {self.name(table.name)}"
        return Statement("truncate", (sql,), (Part(table.name, effect),), table=table.name)

    def update(self, table: TableModel) -> Statement:
        text, test = self.condition(table)
        names, x, value = table.names(), table.ids["x"], self.x_of(table, self._next())
        as_seen = self._as_seen("update")
        if self._chance.random() < 0.3:
            p = table.ids["p"]
            moved = self._chance.choice(PARTITIONS)
            given = f"{names['p']} = {moved}"
            effect = updated(test, lambda row: {**row.cells, p: moved}, as_seen=as_seen)
        else:
            given = f"{names['x']} = {_literal(value)}"
            effect = updated(test, lambda row: {**row.cells, x: value}, as_seen=as_seen)
        sql = f"UPDATE {self.name(table.name)} SET {given} WHERE {text}"
        return Statement(
            "update", (sql,), (Part(table.name, effect),), reads=True, table=table.name
        )

    def merge(self, table: TableModel) -> Statement:
        chance, names, ids = self._chance, table.names(), table.ids
        wanted = sorted(chance.sample(IDS, chance.randint(1, 3)))
        cells = self.cells(table, ids=wanted)
        source = {row[ids["id"]]: row for row in cells}
        x, removes, inserts = ids["x"], chance.random() < 0.3, chance.random() < 0.6
        matched: Callable[[Row, dict[int, Any]], dict[int, Any] | None]
        if removes:
            then, matched = "DELETE", lambda row, given: None
        else:
            then = f"UPDATE SET {names['x']} = u.c"
            matched = lambda row, given: {**row.cells, x: given[x]}  # noqa: E731
        rest = (
            f" WHEN NOT MATCHED THEN INSERT ({self.columns(table)}) VALUES (u.a, u.b, u.c)"
            if inserts or removes
            else ""
        )
        sql = (
            f"MERGE INTO {self.name(table.name)} t USING (VALUES {self.values(table, cells)}) "
            f"u(a, b, c) ON t.{names['id']} = u.a WHEN MATCHED THEN {then}{rest}"
        )
        effect = merged(
            lambda row: row.cells.get(ids["id"]), source, matched, inserts=bool(rest),
            as_seen=self._as_seen("merge"),
        )  # fmt: skip
        return Statement("merge", (sql,), (Part(table.name, effect),), reads=True, table=table.name)

    def overwrite(self, table: TableModel) -> Statement:
        chance, name = self._chance, self.name(table.name)
        cells = self.cells(table)
        names, p = table.names(), table.ids["p"]
        whole = ("holds rows", "of another partitioning", "only some rows", "PARTITION")
        if self.shape.partitioned and not table.respecced and chance.random() < 0.7:
            if chance.random() < 0.7:
                found = {row[p] for row in cells}
                text = (
                    f"INSERT OVERWRITE {name} ({self.columns(table)}) "
                    f"VALUES {self.values(table, cells)}"
                )
                effect = replaced(lambda row: row.cells.get(p) in found, cells)
                return Statement(
                    "overwrite dynamic",
                    ("SET partition_overwrite_mode = 'dynamic'", text),
                    (Part(table.name, effect),),
                    table=table.name,
                )
            fixed = chance.choice(PARTITIONS)
            for each in cells:
                each[p] = fixed
            rows = ", ".join(
                f"({_literal(row[table.ids['id']])}, {_literal(row[table.ids['x']])})"
                for row in cells
            )
            text = (
                f"INSERT OVERWRITE {name} PARTITION ({names['p']} = {fixed}) "
                f"({names['id']}, {names['x']}) VALUES {rows}"
            )
            effect = replaced(lambda row: row.cells.get(p) == fixed, cells)
        else:
            text = (
                f"INSERT OVERWRITE {name} ({self.columns(table)}) "
                f"VALUES {self.values(table, cells)}"
            )
            effect = replaced(lambda row: True, cells)
        return Statement(
            "overwrite", ("SET partition_overwrite_mode = 'static'", text),
            (Part(table.name, effect),), whole, table=table.name,
        )  # fmt: skip

    # ------------------------------------------------------------------ several as one

    def transaction(self, tables: list[TableModel]) -> Statement:
        """Two to four statements, and COMMIT."""
        chance = self._chance
        only = chance.random() < 0.4
        drawn = []
        for number in range(chance.randint(2, 4)):
            table = tables[number] if number < len(tables) else chance.choice(tables)
            kinds = [self.insert] if only else [self.insert, self.delete, self.update, self.merge]
            drawn.append(chance.choice(kinds)(table))
        texts = [text for each in drawn for text in each.texts]
        parts = [part for each in drawn for part in each.parts]
        return Statement(
            "transaction" if len(tables) == 1 else "transaction of two",
            ("BEGIN", *texts, "COMMIT"), (*parts,), reads=not only,
        )  # fmt: skip

    def create_as(self, table: TableModel, name: str) -> Statement:
        """A new table of rows that the statement reads."""
        names = self.columns(table)
        text, test = self.condition(table)
        told = f" TBLPROPERTIES ('format-version' = '{self.shape.version}')"
        sql = (
            f"CREATE TABLE {self.name(name)}{told} AS SELECT {names} "
            f"FROM {self.name(table.name)} WHERE {text}"
        )
        own = [table.ids[each] for each in ("id", "p", "x")]

        def effect(now: Rows, seen: Rows) -> Rows:
            made = [{n + 1: row.cells.get(key) for n, key in enumerate(own)} for row in seen
                    if test(row)]  # fmt: skip
            return tuple(map(Row, made))

        return Statement(
            "create as", (sql,), (Part(name, effect),), ("exists", "created", "already"),
            reads=True, table=name, makes=name,
        )  # fmt: skip

    # ------------------------------------------------------------------ maintenance

    def _call(self, procedure: str, table: TableModel, more: str = "") -> str:
        return f"CALL system.{procedure}(table => '{self.name(table.name)}'{more})"

    def compaction(self, table: TableModel) -> Statement:
        chance = self._chance
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
        if chance.random() < 0.45:
            text, _ = self.condition(table, pushed=True)
            more += f", where => '{text}'"
        if chance.random() < 0.2:
            more += f", strategy => 'sort', sort_order => '{table.names()['id']} DESC'"
        told = ", ".join(f"'{key}', '{value}'" for key, value in options.items())
        return Statement(
            "rewrite_data_files",
            (self._call("rewrite_data_files", table, f"{more}, options => map({told})"),),
            (Part(table.name, same),), ("commits of the rewrite failed",), reads=True,
            many=partial or "remove-dangling-deletes" in options, table=table.name,
        )  # fmt: skip

    def rewrite_manifests(self, table: TableModel) -> Statement:
        return Statement(
            "rewrite_manifests", (self._call("rewrite_manifests", table),),
            (Part(table.name, same),), table=table.name,
        )  # fmt: skip

    def rewrite_deletes(self, table: TableModel) -> Statement:
        options = ", options => map('rewrite-all', 'true')"
        return Statement(
            "rewrite_position_delete_files",
            (self._call("rewrite_position_delete_files", table, options),),
            (Part(table.name, same),), ("new deletes are vectors",), reads=True, table=table.name,
        )  # fmt: skip

    def expire(self, table: TableModel) -> Statement:
        kept = self._chance.randint(1, 3)
        more = f", older_than => now() + INTERVAL 1 HOUR, retain_last => {kept}"
        if self._chance.random() < 0.3:
            more += ", clean_expired_metadata => true"
        return Statement("expire", (self._call("expire_snapshots", table, more),), table=table.name)

    def orphans(self, table: TableModel) -> Statement:
        return Statement(
            "orphans", (self._call("remove_orphan_files", table),), reads=True, table=table.name,
        )  # fmt: skip

    def copy(self, table: TableModel, place: Path) -> Statement:
        """A copy of it in a folder, or what is new since the last one."""
        since = self._chance.choice(["", ", since => 'latest'"])
        sql = f"CALL system.copy_table('{self.name(table.name)}', location => '{place}'{since})"
        missing = ("leave SINCE out", "no table", "no metadata")
        return Statement("copy", (sql,), (), missing, reads=True, table=table.name)

    def maintain(self, table: TableModel) -> Statement:
        return Statement(
            "maintain", (f"maintain {self.name(table.name)}",), (Part(table.name, same),),
            reads=True, many=True, table=table.name,
        )  # fmt: skip

    def convert(self, table: TableModel) -> Statement:
        return Statement(
            "convert_equality_deletes", (self._call("convert_equality_deletes", table),),
            (Part(table.name, same),), reads=True, table=table.name,
        )  # fmt: skip

    # ------------------------------------------------------------------ history and shape

    def rollback(self, table: TableModel) -> Statement | None:
        """Back to an ancestor of main."""
        assert table.document is not None
        parents = {s["snapshot-id"]: s.get("parent-snapshot-id")
                   for s in table.document["snapshots"]}  # fmt: skip
        found, current = list[int](), table.heads.get("main")
        while (current := parents.get(current)) in parents:  # type: ignore[arg-type]
            found.append(current)  # type: ignore[arg-type]
        found = [each for each in found if table.snapshots.get(each) is not None]
        if not found:
            return None
        back = min(self._chance.choice([0, 0, 1, 2]), len(found) - 1)
        chosen = found[back]
        name = self.name(table.name)
        sql = f"CALL system.rollback_to_snapshot('{name}', {chosen})"
        return Statement(
            "rollback", (sql,), (), ("ancestor", "snapshot"), head=chosen, table=table.name
        )

    def branch(self, table: TableModel) -> Statement:
        there = "dev" in table.rows
        verb = (
            "CREATE OR REPLACE BRANCH"
            if not there or self._chance.random() < 0.4
            else "DROP BRANCH"
        )
        if verb == "DROP BRANCH" and self._chance.random() < 0.3:
            sql = f"CALL system.fast_forward('{self.name(table.name)}', 'main', 'dev')"
        else:
            sql = f"ALTER TABLE {self.name(table.name)} {verb} dev"
        return Statement("branch", (sql,), (), ("branch", "ancestor", "snapshots of its own"),
                         table=table.name)  # fmt: skip

    def columns_changed(self, table: TableModel) -> Statement:
        chance, name = self._chance, self.name(table.name)
        first = {*table.ids.values()}
        others = [each["name"] for each in table.schema() if each["id"] not in first]
        number = self._next()
        texts = [f"ADD COLUMN a{number} INT", f"RENAME COLUMN {table.names()['x']} TO x{number}"]
        if table.version > 2:
            texts.append(f"ADD COLUMN a{number} INT DEFAULT {number}")
        if others:
            texts.append(f"DROP COLUMN {chance.choice(others)}")
        if table.type_of("x") == "int":
            texts.append(f"ALTER COLUMN {table.names()['x']} TYPE BIGINT")
        return Statement(
            "columns", (f"ALTER TABLE {name} {chance.choice(texts)}",), (),
            ("no column", "not found", "there is", "exists", "column"), table=table.name,
        )  # fmt: skip

    def partitions_changed(self, table: TableModel) -> Statement:
        assert table.document is not None
        spec = next(s for s in table.document["partition-specs"]
                    if s["spec-id"] == table.document["default-spec-id"])  # fmt: skip
        id_, p = table.names()["id"], table.ids["p"]
        sources = {each["source-id"] for each in spec["fields"] if each["transform"] != "void"}
        if p in sources:
            text = f"DROP PARTITION FIELD {table.names()['p']}"
        elif table.ids["id"] in sources:
            text = f"DROP PARTITION FIELD bucket(2, {id_})"
        else:
            text = f"ADD PARTITION FIELD bucket(2, {id_})"
        return Statement(
            "partitioning", (f"ALTER TABLE {self.name(table.name)} {text}",), (),
            ("partition field", "partition"), table=table.name,
        )  # fmt: skip

    def replace(self, table: TableModel, *, text_x: bool = False) -> Statement:
        sql = self.shape.create(self.name(table.name), replace=True, text_x=text_x)
        if table.version > self.shape.version:
            sql = sql.replace(f"'format-version' = '{self.shape.version}'",
                              f"'format-version' = '{table.version}'")  # fmt: skip
        return Statement("replace table", (sql,), (), table=table.name, columns="replaced")

    def upgrade(self, table: TableModel) -> Statement:
        sql = (
            f"ALTER TABLE {self.name(table.name)} SET TBLPROPERTIES "
            f"('format-version' = '{table.version + 1}')"
        )
        return Statement("upgrade", (sql,), (), ("format version",), table=table.name)


def _number(key: int, test: Callable[[Any], bool]) -> Test:
    def known(row: Row) -> bool:
        value = row.cells.get(key)
        return value is not None and test(value)

    return known


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    return f"'{value}'" if isinstance(value, str) else str(value)
